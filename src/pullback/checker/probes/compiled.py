"""Is the gradient the same when the function is compiled?"""

from __future__ import annotations

from pullback.checker.draw import cotangents, near, rounding
from pullback.checker.finding import Finding, can
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.view.subject import Forward, Subject


@probe(rank=80, skip_when_wrong=True, in_shipped_dtype=True, anew=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare every compiled variant with eager."""
    findings: list[Finding] = []
    if subject.draws:
        return findings  # a compiler draws other numbers
    for name, (forward, pullback) in subject.variants.items():
        if name in subject.slow and not settings.xla:
            continue
        given = cotangents(subject, settings.rng(13))
        try:
            with subject.by_steps():
                eager = subject.pullback(subject.inputs, given)
        except Exception:  # the contract probe says so
            return []
        try:
            found = pullback(subject.inputs, given)
        except Exception as error:  # a compiler may refuse in any way it likes
            findings += can("compiled", name, "refused", f"{name}: {type(error).__name__}")
            continue
        allowed = rounding(roundoff(given))
        if all(near(a, b, rtol=allowed) for a, b in zip(eager, found)):
            findings += can("compiled", name, "yes", f"{name} agrees with eager")
        elif subject.intent.kind == "differs" and not _same_values(subject, forward, allowed):
            # A gradient that is declared to be no derivative of the values belongs to those it came with.
            said = f"{name} computes other values than eager, as a sampler may: gradients were not compared"
            findings += can("compiled", name, "undecided", said)
        else:
            findings += can(
                "compiled",
                name,
                "no",
                f"{name} gives another gradient than eager",
                "wrong" if subject.is_rule else "note",
                cause="compiled-differs",
                edit=subject.words.frozen,
                where=name,
                inputs=subject.inputs,
                cotangents=given,
            )
    return findings


def _same_values(subject: Subject, forward: Forward, allowed: float) -> bool:
    """Tell whether a compiled variant computes what eager does where its gradient is taken."""
    with subject.by_steps():
        eager = (subject.recorded or subject.forward)(subject.inputs)
    return all(near(a, b, rtol=allowed) for a, b in zip(eager, forward(subject.inputs)))
