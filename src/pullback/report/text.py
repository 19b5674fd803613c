"""The words of a run: a row a rule, a block a failure, and the sum. The terminal adds colour only."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.report.block import block, cells, declared, looks_meant, mendings, reason, unfinished
from pullback.report.entry import Entry, Run, not_checked, worst
from pullback.report.printable import printable, shortened

WORDS = ("right", "as declared", "wrong", "surrogate", "undecided", "not checked", "known", "skipped")
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
    return (
        (written[0], f"not checked: {shortened(printable(why), LONGEST)}", *written[2:]) if why else written
    )


def summary(run: Run) -> str:
    """Count the rules by verdict, in one sentence."""
    groups = run.rules()
    said = ", ".join(f"{n} {label}" for _, label, n in counts(groups))
    rules = "1 rule" if len(groups) == 1 else f"{len(groups)} rules"
    return f"{rules}: {said or 'nothing checked'}; seed {run.seed}"


def ahead(run: Run) -> list[str]:
    """List what to type next where something is wrong: for what a cause means, and for an edit."""
    groups = [(word(group), worst(group).report) for group in run.rules()]
    causes = [cause for name, report in groups if name in ("wrong", "surrogate") for cause in report.causes]
    lines = [f"next: pullback explain {causes[0]}"] if causes else []
    if any(name == "wrong" and not mendings(report) for name, report in groups):
        lines.append("next: the same command with --mend, which searches an edit and proves it")
    return lines


def counts(groups: Sequence[Sequence[Entry]]) -> list[tuple[str, str, int]]:
    """Count rules by the word for them: the word, how it is said of so many, and the number."""
    words = [word(group) for group in groups]
    found = [(name, words.count(name)) for name in WORDS if name in words]
    return [(name, _said(name, n), n) for name, n in found]


def word(entries: Sequence[Entry]) -> str:
    """Give the word that a rule is counted by."""
    entry = worst(entries)
    report = entry.report
    if entry.excused:
        return entry.excused
    if report.verdict == "undecided" and not_checked(entries):
        return "not checked"
    if looks_meant(report):
        return "surrogate"
    return "as declared" if report.verdict == "right" and declared(report) else report.verdict


def _said(name: str, n: int) -> str:
    if name != "surrogate":
        return name
    return "looks like a surrogate: declare it" if n == 1 else "look like surrogates: declare them"


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
