"""The words of a run: a row a rule, a block a failure, and the sum. The terminal adds colour only."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.report.block import block, cells, declared, reason, unfinished
from pullback.report.entry import Entry, Run, not_checked, worst
from pullback.report.printable import printable

LONGEST = 60  # letters of a reason in the table; the block has all of it


def row(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Sum one rule up."""
    entry = worst(entries)
    written = cells(entry.report, entry.where)
    why = not_checked(entries) if entry.report.verdict == "undecided" else ""
    return (written[0], f"not checked: {_short(printable(why))}", *written[2:]) if why else written


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def summary(run: Run) -> str:
    """Count the rules by verdict, in one sentence."""
    groups = run.rules()
    reports = [worst(group).report for group in groups]
    left = sum(r.verdict == "undecided" and bool(not_checked(g)) for r, g in zip(reports, groups))
    counts = {
        "right": sum(r.verdict == "right" and not declared(r) for r in reports),
        "as declared": sum(r.verdict == "right" and declared(r) for r in reports),
        "wrong": sum(r.verdict == "wrong" for r in reports),
        "undecided": sum(r.verdict == "undecided" for r in reports) - left,
        "not checked": left,
    }
    said = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    rules = "1 rule" if len(reports) == 1 else f"{len(reports)} rules"
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
                if entry.report.verdict != verdict or key in causes:
                    continue
                if verdict == "right" and not unfinished(entry.report):
                    continue
                causes.add(key)
                told.append((entry, block(entry.report, where=entry.where, signature=entry.signature)))
    return told
