"""The words of a run: a row a rule, a block a failure, and the sum. The terminal adds colour only."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.report.block import block, cells, declared, looks_meant, reason, unfinished
from pullback.report.entry import Entry, Run, not_checked, worst
from pullback.report.printable import printable

LONGEST = 60  # letters of a reason in the table; the block has all of it


def row(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Sum one rule up."""
    entry = worst(entries)
    written = cells(entry.report, entry.where)
    if entry.excused == "known":
        return (written[0], f"known: {', '.join(entry.report.causes) or entry.report.verdict}", *written[2:])
    if entry.excused == "skipped":
        return (written[0], f"skipped: {printable(entry.report.findings[0].sentence)}", *written[2:])
    why = not_checked(entries) if entry.report.verdict == "undecided" else ""
    return (written[0], f"not checked: {_short(printable(why))}", *written[2:]) if why else written


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def summary(run: Run) -> str:
    """Count the rules by verdict, in one sentence."""
    groups = run.rules()
    entries = [worst(group) for group in groups]
    counted = [(entry.report, group) for entry, group in zip(entries, groups) if not entry.excused]
    reports = [report for report, _ in counted]
    left = sum(r.verdict == "undecided" and bool(not_checked(g)) for r, g in counted)
    meant = sum(map(looks_meant, reports))
    counts = {
        "right": sum(r.verdict == "right" and not declared(r) for r in reports),
        "as declared": sum(r.verdict == "right" and declared(r) for r in reports),
        "wrong": sum(r.verdict == "wrong" for r in reports) - meant,
        "looks like a surrogate: declare it" if meant == 1 else "look like surrogates: declare them": meant,
        "undecided": sum(r.verdict == "undecided" for r in reports) - left,
        "not checked": left,
        "known": sum(entry.excused == "known" for entry in entries),
        "skipped": sum(entry.excused == "skipped" for entry in entries),
    }
    said = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    rules = "1 rule" if len(entries) == 1 else f"{len(entries)} rules"
    return f"{rules}: {said or 'nothing checked'}; seed {run.seed}"


def blocks(run: Run) -> list[tuple[Entry, str]]:
    """Give a block per wrong rule and cause, then per undecided or unfinished rule; a cause is told once."""
    told: list[tuple[Entry, str]] = []
    for verdict in ("wrong", "undecided", "right"):
        for group in run.rules():
            causes: set[tuple[str, ...]] = set()
            if worst(group).report.verdict != verdict:
                continue
            for entry in group:
                key = tuple(entry.report.causes) or (reason(entry.report),)
                if entry.report.verdict != verdict or key in causes or entry.excused:
                    continue
                if verdict == "right" and not unfinished(entry.report):
                    continue
                causes.add(key)
                told.append((entry, block(entry.report, where=entry.where, signature=entry.signature)))
    return told
