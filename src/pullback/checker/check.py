"""The entry: run every probe on one function, name the causes of what fails, and report."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback import hosts, tree
from pullback.checker.budget import Budget, Spent
from pullback.checker.capabilities import capabilities
from pullback.checker.cause import Match, search
from pullback.checker.evidence import Evidence
from pullback.checker.finding import Finding, Report, Verdict
from pullback.checker.probe import probes as discovered
from pullback.checker.reproduce import code
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.checker.shrink import shrunk
from pullback.checker.space import roundoff
from pullback.errors import DefinitionError, HostError, NoTensorError, OptionError
from pullback.options import require_number
from pullback.view import subject_of
from pullback.view.subject import Counter, Subject, counted


def check(
    f: Callable[..., Any],
    *args: Any,
    seed: int | None = None,
    order: int = 2,
    rtol: float | None = None,
    probes: Sequence[str] | None = None,
    own_points: bool = True,
    xla: bool = True,
    export: bool = True,
    budget: float = Settings.budget,
    **kwargs: Any,
) -> Report:
    """Check the gradient of any differentiable callable at example arguments.

    It need not know of pullback: a rule of a framework's own, a layer, a loss and a plain function are
    checked alike. The report says whether the gradient is right, and if not, which inputs, where, and why.

    Args:
        f: The callable.
        args: Its arguments; tensors and arrays among them are its inputs.
        kwargs: Its arguments by name.
        seed: Fixes the points and directions that are drawn.
        order: The highest derivative that is tested, 1 or 2.
        rtol: Loosens what counts as equal; a rule may say it of itself.
        probes: The names of the questions to ask; all of them if not given.
        own_points: Whether to look at other points than the arguments, too.
        xla: Whether slow compilers (XLA, torch.compile) are among the capabilities.
        export: Whether the export is.
        budget: The CPU seconds that it may take. What is not asked by then is said; a body that never
            returns at a point of the checker's own is left, and what was proven at the given one stays.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.check(tf.nn.softplus, tf.constant([0.3, -1.2]), seed=0).verdict
        'right'

    Do not use it inside a training step: it runs the function many times. In a test, `pb.testing` says it in
    one line.
    """
    if not callable(f):
        raise DefinitionError.about(
            "check",
            found=f"it was given a {type(f).__name__}",
            expected="a function, a rule, a layer or a loss, and then its arguments",
            fix="pb.check(f, x)",
        )
    if order not in (1, 2):
        raise OptionError.about(
            "check",
            found=f"order={order!r}",
            expected="1 or 2, the highest derivative that is tested",
            why="higher ones would be passed without a look",
            fix="order=2, on the gradient of the function",
        )
    name = getattr(f, "__name__", type(f).__name__)
    require_number("check", "budget", budget, least=0, fix="budget=60", above=True)
    leaves, _ = tree.flatten([args, kwargs])
    try:
        host = hosts.among(leaves, f, name)
    except HostError:
        if any(hosts.role(type(leaf)) is not hosts.Role.STATIC for leaf in leaves):
            raise
        raise NoTensorError(
            f"{name}: no argument is a tensor or an array; there is nothing to differentiate"
        ) from None
    settings = Settings(
        seed=secrets.randbelow(2**31) if seed is None else seed,
        order=order,
        rtol=rtol,
        probes=None if probes is None else tuple(probes),
        own_points=own_points,
        xla=xla,
        export=export,
        budget=budget,
    )
    return check_subject(subject_of(host, f, args, kwargs), settings)


def check_subject(
    given: Subject, settings: Settings, told: Callable[[Report], None] = lambda report: None
) -> Report:
    """Check a subject that a host built; `told` hears what is known after each finding."""
    budget = Budget(settings.budget)
    given = replace(given, counter=Counter(look=budget.look))
    shipped = counted(given)
    unit = roundoff([x for x, d in zip(given.inputs, given.differentiable) if d])
    finer = given.astype("float64") if unit > 1e-12 and given.astype else None
    subject = counted(replace(finer, counter=shipped.counter, known_as=given.known_as)) if finer else shipped
    settings = replace(settings, shipped=unit)
    if settings.rtol is None and given.accuracy is not None:
        settings = replace(settings, rtol=given.accuracy)
    findings: list[Finding] = []
    left = ""  # the question that the budget did not suffice for
    for name, probe in discovered().items():
        asked = settings.probes is not None and name in settings.probes
        if not asked and (settings.probes is not None or probe.on_request):
            continue
        if probe.skip_when_wrong and not asked and any(f.verdict == "wrong" for f in findings):
            continue
        try:
            with budget.watching():
                for finding in probe.ask(shipped if probe.in_shipped_dtype else subject, settings):
                    findings.append(finding)
                    told(reported(given, findings, {}, settings))
        except Spent:
            left = name
            break
        if findings and findings[-1].last:
            break
    if left:
        findings.append(unfinished(findings, left, settings))
    with contextlib.suppress(Spent), budget.watching():
        budget.extend()
        findings = explained(subject, findings, settings)
    table = {}
    with contextlib.suppress(Spent), budget.watching():
        table = capabilities(shipped, findings, settings if not left else replace(settings, probes=()))
    return reported(given, findings, table, settings)


def unfinished(findings: list[Finding], probe: str, settings: Settings) -> Finding:
    """Say that the budget is spent: a note where the given point is decided, else that nothing is."""
    decided = any(f.verdict in ("right", "wrong") for f in findings)
    said = (
        f"the budget of {settings.budget:g} s was spent in the question {probe!r}; what follows was not asked"
    )
    return Finding(probe, "note" if decided else "undecided", said, reason="budget")


def reported(given: Subject, findings: list[Finding], table: dict[str, str], settings: Settings) -> Report:
    """Sum up what was found."""
    resolutions = [f.resolution for f in findings if f.verdict == "right" and f.resolution is not None]
    return Report(
        name=given.name,
        verdict=verdict_of(given, findings),
        findings=tuple(findings),
        resolution=max(resolutions) if resolutions else None,
        oracle=next((f.oracle for f in findings if f.oracle), ""),
        capabilities=table,
        seed=settings.seed,
        intent=str(given.intent),
        source=given.source,
        forwards=given.counter.forwards,
        pullbacks=given.counter.pullbacks,
    )


def verdict_of(subject: Subject, findings: list[Finding]) -> Verdict:
    """Sum findings up."""
    kinds = {f.verdict for f in findings}
    if "wrong" in kinds:
        return "wrong"
    if "right" in kinds and not any(f.verdict == "undecided" and f.probe == "derivative" for f in findings):
        return "right"
    if subject.intent.kind == "differs" and "undecided" not in kinds:
        return "right"
    return "undecided"


def explained(subject: Subject, findings: list[Finding], settings: Settings) -> list[Finding]:
    """Give every failure its cause and its reproducer."""
    explained = []
    if any(f.probe == "derivative" and f.verdict == "wrong" for f in findings):
        findings = blamed(findings)
    first_order_fails = any(f.verdict == "wrong" and f.probe != "second_order" for f in findings)
    for finding in findings:
        if finding.verdict != "wrong":
            explained.append(finding)
            continue
        if finding.probe == "second_order" and first_order_fails:
            continue  # a wrong first order explains it
        if finding.probe == "linearity" and any(
            f.probe == "derivative" and f.verdict == "wrong" for f in findings
        ):
            continue
        explained.append(with_cause(subject, finding, settings))
    return explained


def blamed(findings: list[Finding]) -> list[Finding]:
    """Blame a wrong derivative on the shape that the host put right in silence, if there is one."""
    if not any(f.mended for f in findings):
        return findings
    rest = [f for f in findings if f.probe != "derivative" or f.verdict != "wrong"]
    return [replace(f, verdict="wrong") if f.mended else f for f in rest]


def with_cause(subject: Subject, finding: Finding, settings: Settings) -> Finding:
    """Search the cause of one failure, on the smallest input that shows it."""
    inputs = finding.inputs or subject.inputs
    here = subject.at(inputs)
    if finding.cause == "upstream-nonlinear":  # of the identity it may be meant
        meant = cause_of(here, finding, settings)
        if meant is not None and meant.slug == "surrogate":
            finding = replace(finding, cause=meant.slug, sentence=meant.sentence, edit=meant.edit)
    if finding.cause is None:
        small = shrunk(here, settings) if finding.probe == "derivative" else here
        match = cause_of(small, finding, settings)
        if small is not here:
            finding = replace(finding, inputs=small.inputs, cotangents=None)
            here = small
        if finding.resized and (match is None or match.slug == "constant-factor"):
            # Right at the given shape, off by a factor at another: a size is written into the rule.
            return replace(
                finding,
                verdict="note",
                sentence="a size seems to be written into the rule: it fits the given shapes only",
            )
        if match is not None:
            finding = replace(
                finding,
                cause=match.slug,
                sentence=f"{match.sentence}{_at(finding)}",
                edit=match.edit,
                where=match.where,
            )
        else:
            finding = replace(finding, sentence=finding.sentence + "; no pattern found")
    note = (
        "" if finding.measured is None else f"measured {finding.measured:.9g}, claimed {finding.claimed:.9g}"
    )
    return replace(
        finding, reproducer=code(here, here.inputs, finding.cotangents, seed=settings.seed, note=note)
    )


def _at(finding: Finding) -> str:
    return "" if finding.point == "given" else f" (seen at a point of the checker's own: {finding.point})"


def cause_of(subject: Subject, finding: Finding, settings: Settings) -> Match | None:
    """Gather evidence and ask the causes."""
    try:
        if finding.probe == "second_order":
            return search(Evidence(second_subject(subject, settings.rng(8)), settings, order=2))
        return search(Evidence(subject, settings))
    except (ArithmeticError, np.linalg.LinAlgError):
        return None
