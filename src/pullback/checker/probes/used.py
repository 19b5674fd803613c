"""Was the rule used at all? Hosts bypass rules silently, for keyword arguments for one."""

from __future__ import annotations

from pullback.checker.draw import cotangents, near
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.view.subject import Subject


@probe(rank=15)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare the host's gradient with the rule's `grad` called by hand and with plain autodiff."""
    if subject.direct_pullback is None or subject.body_pullback is None:
        return []
    given = cotangents(subject, settings.rng(15))
    try:
        claimed = subject.pullback(subject.inputs, given)
        direct = subject.direct_pullback(subject.inputs, given)
        plain = subject.body_pullback(subject.inputs, given)
    except Exception:  # the contract probe says so
        return []
    if subject.mends_shapes and any(
        d is not None and d.shape != x.shape for d, x in zip(direct, subject.inputs)
    ):
        return []  # the host puts a shape right: the contract probe says so
    rtol = 2**10 * roundoff(given)
    pairs = list(zip(claimed, direct, plain, subject.differentiable))
    apart = [
        c is None or not near(c, d, rtol=rtol) for c, d, _, ok in pairs if ok and d is not None and d.any()
    ]
    bypassed = all(near(c, p, rtol=rtol) for c, _, p, ok in pairs if ok)
    missing = any(c is None for c, d, _, ok in pairs if ok and d is not None and d.any())
    if not any(apart) or not (bypassed or missing):
        return []
    return [
        Finding(
            "used",
            "wrong",
            "the rule is never used: the host gives another gradient than `grad` does"
            + (", that of plain autodiff" if bypassed else " (None)"),
            "rule-unused",
            subject.words.unused,
            inputs=subject.inputs,
            cotangents=given,
        )
    ]
