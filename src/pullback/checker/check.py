"""The entry: run every probe on one function, name the causes of what fails, and report."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pullback import configuration, hosts, tree
from pullback.checker.budget import Budget, Spent
from pullback.checker.capabilities import capabilities
from pullback.checker.explain import explained
from pullback.checker.finding import Finding, Report, Verdict
from pullback.checker.pictures import pictures
from pullback.checker.probe import Probe
from pullback.checker.probe import probes as discovered
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.checker.within import within
from pullback.domain import EXPECTED, Domain, DomainError
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
    domain: Any = None,
    budget: float = Settings.budget,
    pictures: bool = False,
    **kwargs: Any,
) -> Report:
    """Check the gradient of any differentiable callable at example arguments.

    It need not know of pullback: a rule of a framework's own, a layer, a loss and a plain function are
    checked alike. The report says whether the gradient is right, and if not, which inputs, where, and why.

    Args:
        f: The callable.
        args: Its arguments; tensors and arrays among them are its inputs.
        kwargs: Its arguments by name. Those named below are the checker's: give a function that has one of
            them by `functools.partial(f, seed=3)`.
        seed: Fixes the points and directions that are drawn; else the configuration does, if there is one.
        order: The highest derivative that is tested, 1 or 2.
        rtol: Loosens what counts as equal; a rule may say it of itself.
        probes: The names of the questions to ask; all of them if not given.
        own_points: Whether to look at other points than the arguments, too.
        xla: Whether slow compilers (XLA, torch.compile) are among the capabilities.
        export: Whether the export is.
        domain: Where the function means something: `(low, high)`, `{"x": (low, high)}`, or a function of the
            inputs that tells whether they are inside. Nothing outside is asked of it.
        budget: The CPU seconds that it may take. What is not asked by then is said; a body that never
            returns at a point of the checker's own is left, and what was proven at the given one stays.
        pictures: Whether to add what a notebook shows of the report: pictures, and the source.

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
        seed=chosen(seed),
        order=order,
        rtol=rtol,
        probes=None if probes is None else tuple(probes),
        own_points=own_points,
        xla=xla,
        export=export,
        budget=budget,
        pictures=pictures,
    )
    subject = subject_of(host, f, args, kwargs)
    if domain is not None:
        try:
            subject = replace(subject, domain=Domain.of(domain))
        except DomainError as problem:
            raise OptionError.about(
                name, found=str(problem), expected=EXPECTED, fix="domain=(0.0, 1.0)"
            ) from None
    return check_subject(subject, settings)


def chosen(seed: int | None) -> int:
    """Give the seed: the one that was asked for, that of the configuration, or any."""
    if seed is None:
        seed = configuration.current().seed
    return secrets.randbelow(2**31) if seed is None else seed


def check_subject(
    given: Subject, settings: Settings, told: Callable[[Report], None] = lambda report: None
) -> Report:
    """Check a subject that a host built; `told` hears what is known after each finding."""
    budget = Budget(settings.budget)
    given = replace(given, counter=Counter(look=budget.look))
    given = within(given)
    shipped = counted(given)
    unit = roundoff([x for x, d in zip(given.inputs, given.differentiable) if d])
    finer = given.astype("float64") if unit > 1e-12 and given.astype else None
    if finer is None:
        subject = shipped
    else:
        finer = replace(finer, counter=shipped.counter, known_as=given.known_as, domain=given.domain)
        subject = counted(within(finer))
    settings = replace(settings, shipped=unit)
    if settings.rtol is None and given.accuracy is not None:
        settings = replace(settings, rtol=given.accuracy)
    with contextlib.suppress(Spent), budget.watching():
        shipped.forward(shipped.inputs)  # what the function itself raises at its example is raised
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
                for finding in answered(
                    name, probe, shipped if probe.in_shipped_dtype else subject, settings
                ):
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
    report = reported(given, findings, table, settings)
    return shown(report, subject, shipped, settings, budget) if settings.pictures else report


def shown(report: Report, subject: Subject, shipped: Subject, settings: Settings, budget: Budget) -> Report:
    """Add what a page shows beside the findings: the pictures, as far as the budget goes, and the source."""
    seen: list[Mapping[str, Any]] = []
    with contextlib.suppress(Spent), budget.watching():
        for picture in pictures(subject, shipped, list(report.findings), settings):
            seen.append(picture)
    code = docstring = ""
    with contextlib.suppress(Exception):  # what an object does when it is looked at is its own
        code, docstring = shipped.text()
    return replace(report, code=code, docstring=docstring, pictures=tuple(seen))


def unfinished(findings: list[Finding], probe: str, settings: Settings) -> Finding:
    """Say that the budget is spent: a note where the given point is decided, else that nothing is."""
    decided = any(f.verdict in ("right", "wrong") for f in findings)
    said = (
        f"the budget of {settings.budget:g} s was spent in the question {probe!r}; what follows was not asked"
    )
    return Finding(probe, "note" if decided else "undecided", said, reason="budget")


def reported(given: Subject, findings: list[Finding], table: dict[str, str], settings: Settings) -> Report:
    """Sum up what was found."""
    proven = [f for f in findings if f.verdict == "right" or f.probe == "precision"]
    resolutions = [f.resolution for f in proven if f.resolution is not None]
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


def answered(name: str, probe: Probe, subject: Subject, settings: Settings) -> Iterator[Finding]:
    """Ask one probe; one that fails costs the rest of its answer, and says so."""
    try:
        yield from probe.ask(subject, settings)
    except Exception as error:  # a function may fail in any way it likes, at any point, in any mode
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        yield Finding(name, "note", f"the question could not be asked here: {said}", reason="crash")


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
