"""One line of a run: a report, and where in the user's program it comes from; and the run that holds them.

Both travel between processes and into files as plain data, so a number that JSON cannot write becomes a word.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.checker.finding import Finding, Report
from pullback.report.block import unfinished
from pullback.report.printable import cleaned

SCHEMA = 1
NUMBERS = ("measured", "claimed", "resolution")
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


def to_plain(entry: Entry) -> dict[str, Any]:
    """Give an entry as plain data."""
    report = entry.report.to_dict()
    report.pop("schema")
    report["resolution"] = _written(report["resolution"])
    for finding in report["findings"]:
        finding.update({name: _written(finding[name]) for name in NUMBERS})
    return {
        "target": entry.target, "path": entry.path, "line": entry.line, "signature": entry.signature,
        "calls": entry.calls, "qualified": entry.qualified, "excused": entry.excused, **report,
    }  # fmt: skip


def from_plain(data: dict[str, Any]) -> Entry:
    """Read an entry back; what a program may have put into its texts is escaped."""
    data = cleaned(data)
    findings = tuple(Finding(**{**f, **{name: _read(f[name]) for name in NUMBERS}}) for f in data["findings"])
    report = Report(
        name=data["name"], verdict=data["verdict"], findings=findings, resolution=_read(data["resolution"]),
        oracle=data["oracle"], capabilities=data["capabilities"], seed=data["seed"], intent=data["intent"],
        source=data["source"], forwards=data["forwards"], pullbacks=data["pullbacks"],
    )  # fmt: skip
    facts = (data[name] for name in ("target", "path", "line", "signature", "calls", "qualified", "excused"))
    return Entry(report, *facts)


def _written(number: float | None) -> float | str | None:
    if number is None or math.isfinite(number):
        return None if number is None else float(number)
    return str(float(number))


def _read(number: float | str | None) -> float | None:
    return None if number is None else float(number)
