"""The inquiry: run every probe on one function, name the causes of what fails, and report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pullback import hosts, tree
from pullback.checker.budget import Budget, Spent
from pullback.checker.capabilities import capabilities
from pullback.checker.explain import explained
from pullback.checker.finding import Finding, Report, Verdict
from pullback.checker.memory import remembered
from pullback.checker.pictures import pictures
from pullback.checker.probe import Probe
from pullback.checker.probe import probes as discovered
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.checker.within import placed, within
from pullback.errors import HostError, NoTensorError
from pullback.view import subject_of
from pullback.view.subject import Counter, Subject, counted


def check_call(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    settings: Settings,
    domain: Any = None,
) -> Report:
    """Check a callable at arguments, on the host that they belong to."""
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
    subject = subject_of(host, f, args, kwargs)
    return check_subject(placed(subject, domain), settings)


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
    anew = {True: shipped, False: subject}  # by whether it is as it ships
    known = {True: remembered(shipped)}
    known[False] = known[True] if subject is shipped else remembered(subject)
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
                asked_of = (anew if probe.anew else known)[probe.in_shipped_dtype]
                for finding in answered(name, probe, asked_of, settings):
                    findings.append(finding)
                    told(reported(given, findings, {}, settings))
        except Spent:
            left = name
            break
        if findings and findings[-1].last:
            break
    if left:
        findings.append(unfinished(given, findings, left, settings))
    with contextlib.suppress(Spent), budget.watching():
        budget.extend()
        findings = explained(known[False], findings, settings)
    table = {}
    with contextlib.suppress(Spent), budget.watching():
        table = capabilities(known[True], findings, settings if not left else replace(settings, probes=()))
    report = reported(given, findings, table, settings)
    return shown(report, known[False], known[True], settings, budget) if settings.pictures else report


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


def unfinished(subject: Subject, findings: list[Finding], probe: str, settings: Settings) -> Finding:
    """Say that the budget is spent: a note where the given point is decided, else that nothing is."""
    # What is different on purpose is not compared with the derivative: that note is all there is to decide.
    on_purpose = subject.intent.kind == "differs"
    decided = any(
        f.verdict in ("right", "wrong") or (on_purpose and f.probe == "derivative") for f in findings
    )
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
