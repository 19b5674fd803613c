"""One line of a run: a report, and where in the user's program it comes from; and the run that holds them.

Both are read by every form of a report. Nothing of the checker's is imported: a report shows itself, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pullback.report.block import unfinished

if TYPE_CHECKING:
    from pullback.checker.finding import Report

NOT_RUN, NOT_RECORDED = "not run", "not recorded"  # why nothing could be said of a call


@dataclass(frozen=True)
class Entry:
    """Hold one checked call of one rule."""

    report: Report
    target: str = ""
    path: str = ""
    line: int = 0
    signature: str = ""
    calls: int = 0
    qualified: str = ""  # the rule's name as an import spells it
    excused: str = ""  # why it does not count: "known" by a baseline, "skipped" by a declaration

    @property
    def named(self) -> str:
        """Name the rule, in every run the same."""
        return self.qualified or self.report.name

    @property
    def where(self) -> str:
        """Give `path:line`, as short as it can be from here."""
        return f"{relative(self.path)}:{self.line}" if self.path else self.report.source

    @property
    def unchecked(self) -> str:
        """Say why the call was not checked at all; nothing where it was."""
        return next((f.reason for f in self.report.findings if f.reason in (NOT_RUN, NOT_RECORDED)), "")


@dataclass
class Run:
    """Hold everything one command found."""

    seed: int
    targets: tuple[str, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Tables of the configuration that spoke of a rule, and those that could have and did not.
    used: set[str] = field(default_factory=set)
    unused: set[str] = field(default_factory=set)
    signal: int = 0  # that ended it

    def rules(self) -> list[list[Entry]]:
        """Group the entries by rule, in the order of their first check."""
        groups: dict[Any, list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault((entry.path, entry.line, entry.report.name), []).append(entry)
        return list(groups.values())

    def exit_code(self, *, strict: bool = False) -> int:
        """Give 2 when a target could not be run, 1 when something is wrong, 2 when a rule was not checked.

        One that a signal ended gives what a shell gives for it.
        """
        if self.signal:
            return 128 + self.signal
        if self.problems:
            return 2
        verdicts = {e.report.verdict for e in self.entries if not e.excused}
        if "wrong" in verdicts:
            return 1
        if any(map(not_checked, self.rules())):
            return 2
        return int(strict and "undecided" in verdicts)


def not_checked(entries: Sequence[Entry]) -> str:
    """Say why a rule was not checked: a call of it was not recorded, or not one of its calls could be run."""
    lost = [e for e in entries if e.unchecked == NOT_RECORDED]
    left = lost or ([] if any(not e.unchecked for e in entries) else list(entries))
    return left[0].report.findings[0].sentence if left else ""


def worst(entries: Iterable[Entry]) -> Entry:
    """Give the entry that says most of its rule: wrong, else undecided, else unfinished, else the first.

    What is excused says less than what is not.
    """
    order = {"wrong": 0, "undecided": 1, "right": 3}
    return min(entries, key=lambda e: (2 if e.excused else order[e.report.verdict], not unfinished(e.report)))


def relative(path: str) -> str:
    """Shorten a path that lies below the current folder."""
    try:
        short = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if short.startswith("..") else short
