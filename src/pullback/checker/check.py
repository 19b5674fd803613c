"""The entry: run every probe on one function, name the causes of what fails, and report."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback import hosts, tree
from pullback.checker.capabilities import capabilities
from pullback.checker.cause import Match, search
from pullback.checker.evidence import Evidence
from pullback.checker.finding import Finding, Report, Verdict
from pullback.checker.probe import Probe
from pullback.checker.probe import probes as discovered
from pullback.checker.reproduce import code
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.checker.shrink import shrunk
from pullback.checker.space import roundoff
from pullback.errors import DefinitionError, HostError, NoTensorError, OptionError
from pullback.view import subject_of
from pullback.view.subject import Subject, counted


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
    )
    return check_subject(subject_of(host, f, args, kwargs), settings)


def check_subject(given: Subject, settings: Settings) -> Report:
    """Check a subject that a host built."""
    shipped = counted(given)
    unit = roundoff([x for x, d in zip(given.inputs, given.differentiable) if d])
    finer = given.astype("float64") if unit > 1e-12 and given.astype else None
    subject = counted(replace(finer, counter=shipped.counter)) if finer else shipped
    settings = replace(settings, shipped=unit)
    if settings.rtol is None and given.accuracy is not None:
        settings = replace(settings, rtol=given.accuracy)
    shipped.forward(shipped.inputs)  # what the function itself raises at its example is raised
    findings: list[Finding] = []
    for name, probe in discovered().items():
        asked = settings.probes is not None and name in settings.probes
        if not asked and (settings.probes is not None or probe.on_request):
            continue
        if probe.skip_when_wrong and not asked and any(f.verdict == "wrong" for f in findings):
            continue
        findings += answered(name, probe, shipped if probe.in_shipped_dtype else subject, settings)
        if findings and findings[-1].last:
            break
    findings = explained(subject, findings, settings)
    proven = [f for f in findings if f.verdict == "right" or f.probe == "precision"]
    resolutions = [f.resolution for f in proven if f.resolution is not None]
    return Report(
        name=given.name,
        verdict=verdict_of(given, findings),
        findings=tuple(findings),
        resolution=max(resolutions) if resolutions else None,
        oracle=next((f.oracle for f in findings if f.oracle), ""),
        capabilities=capabilities(shipped, findings, settings),
        seed=settings.seed,
        intent=str(given.intent),
        source=given.source,
        forwards=shipped.counter.forwards,
        pullbacks=shipped.counter.pullbacks,
    )


def answered(name: str, probe: Probe, subject: Subject, settings: Settings) -> list[Finding]:
    """Ask one probe; one that fails costs its answer, and says so."""
    try:
        return probe.ask(subject, settings)
    except Exception as error:  # a function may fail in any way it likes, at any point, in any mode
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return [Finding(name, "note", f"the question could not be asked here: {said}", reason="crash")]


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
