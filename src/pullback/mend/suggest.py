"""A report with the edit that was searched for it: its findings say what is proven of the edit, and what not.

The verdict stands whatever happens to the search: one that fails or is interrupted leaves a sentence. It
keeps to its budget by itself; in the command, one that does not is ended with its process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from pullback.checker.finding import Finding, Report
from pullback.checker.settings import Settings
from pullback.mend.diff import unified
from pullback.mend.patch import Mending, Patch
from pullback.report.block import MEND, looks_meant

ORDERS = {1: "at first order", 2: "at first and second order"}


def mended(
    report: Report,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    settings: Settings,
    searching: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    domain: Any = None,
) -> Report:
    """Search an edit for a wrong rule, if that is asked for, and add what was found to its report."""
    if settings.mend <= 0 or report.verdict != "wrong":
        return report
    if looks_meant(report):
        return noted(report, Mending(refused="it looks different on purpose: declare it"), settings.folder)
    with searching():
        found = searched(report, function, args, kwargs, settings.mend, domain)
        if not found.patches:
            found = replace(found, instead=resort(function, args, kwargs, settings, domain))
    return noted(report, found, settings.folder)


def searched(
    report: Report,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    seconds: float,
    domain: Any = None,
) -> Mending:
    """Run the search; whatever it does, there is an answer."""
    try:
        from pullback.mend.search import mend  # it checks what it finds, with all that this needs

        return mend(function, args, dict(kwargs), report, budget=seconds, domain=domain)
    except KeyboardInterrupt:  # of the search; what the check has found is wanted all the same
        return Mending(refused="the search was interrupted")
    except BaseException as error:  # it runs the user's code, changed: that may leave Python, too
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return Mending(refused=f"the search failed ({said})")


def resort(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    settings: Settings,
    domain: Any = None,
) -> str | None:
    """Ask for the last resort, as far as the budget of the search goes; None where there is none."""
    from pullback.mend.instead import instead

    try:
        return instead(function, args, kwargs, replace(settings, budget=settings.mend), domain)
    except (Exception, KeyboardInterrupt):  # the body is the user's, too
        return None


def noted(report: Report, found: Mending, folder: str = "") -> Report:
    """Say in findings what was found; the first failure carries the smallest edit, too."""
    notes = [_suggestion(patch, folder, report, first=not i) for i, patch in enumerate(found.patches)]
    if not notes:
        notes = [_nothing(found)]
    if found.instead:
        notes.append(_note(f"the last resort: {found.instead}"))
    findings = list(report.findings)
    for at in [i for i, f in enumerate(findings) if f.verdict == "wrong"][:1]:
        findings[at] = replace(findings[at], patch=notes[0].patch)
    return replace(report, findings=(*findings, *notes), mending=found)


def _suggestion(patch: Patch, folder: str, report: Report, *, first: bool) -> Finding:
    points = list(dict.fromkeys(patch.points))  # what was looked at twice counts once
    count = len(points)
    where = f"at all {count} points that were" if count != 1 else "at the only point that was"
    stays = f"; {patch.rest}" if patch.rest else ""
    proof = f"this edit makes it right {where} checked, {ORDERS[patch.order]}{stays}:"
    measured = _beside(report.causes, patch)
    lines = [proof, *(f"  {point}" for point in points), *([measured] if measured else [])]
    said = patch.words if first else f"or: {patch.words}"
    return replace(_note(said), where="\n".join(lines), patch=unified(patch, folder))


def _beside(causes: list[str], patch: Patch) -> str:
    """Name the cause that was measured, and say if it is not what the edit mends."""
    named = ", ".join(causes)
    if not named:
        return ""
    if patch.explains is None or set(causes) & set(patch.explains):
        return f"the cause that was measured: {named}"
    return f"the cause that was measured, {named}, and this edit do not name the same bug: read both"


def _nothing(found: Mending) -> Finding:
    if found.refused:
        return _note(f"no edit: {found.refused}")
    much = f"{found.tried} were tried in {found.seconds:.1f} s of CPU time"
    ended = ", which is all that it was given" if found.spent else ""
    note = _note(f"no edit was found that makes it right; {much}{ended}")
    if not found.edits:
        return note
    more = ["a larger budget may find more: --mend-budget, mend_budget="] if found.spent else []
    return replace(note, where="\n".join(["of these kinds:", *(f"  {kind}" for kind in found.edits), *more]))


def _note(sentence: str) -> Finding:
    return Finding(MEND, "note", sentence)
