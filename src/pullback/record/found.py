"""What the children of one target have told, put together in the order of its rules.

A rule that a child died of, or was left in, keeps what was known of it by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pullback.checker.finding import Finding, Report
from pullback.report.entry import Entry, Run
from pullback.report.plain import from_plain

Place = tuple[Any, ...]


@dataclass
class Purse:
    """Hold the CPU seconds that the checks of a run may take together; None is no limit."""

    budget: float | None
    spent: float = 0.0

    @property
    def left(self) -> float | None:
        """Give what is left."""
        return None if self.budget is None else max(self.budget - self.spent, 0.0)


class Found:
    """Collect the findings of one target."""

    def __init__(self, purse: Purse) -> None:
        self.purse = purse
        self.at: dict[Place, int] = {}  # the number of the module that a rule stands in
        self.entries: dict[Place, list[Entry]] = {}
        self.partial: dict[Place, Entry] = {}
        self.order: tuple[Place, ...] = ()
        self.total = 0
        self.problems: list[str] = []
        self.nothing: list[str] = []
        self.notes: list[str] = []
        self.used: set[str] = set()  # tables of the configuration that spoke of a rule
        self.unused: set[str] = set()

    @property
    def done(self) -> tuple[Place, ...]:
        """List the rules that are not to be checked again."""
        return tuple(self.entries)

    def told(self, event: dict[str, Any], raw: dict[str, Any]) -> None:
        """Take one event; `raw` is the same before it was made fit to print."""
        kind = event["kind"]
        place = tuple(raw.get("place", ()))
        self.at.setdefault(place, event.get("at", 0))
        if kind == "entry":
            self.entries.setdefault(place, []).append(from_plain(event["entry"]))
            self.partial.pop(place, None)
        elif kind == "partial":
            self.partial[place] = from_plain(event["entry"])
        elif kind == "rules":
            self.order = tuple(map(tuple, raw["places"]))
            self.total = len(self.order)
        elif kind == "several":
            self.total = event["count"]
        elif kind == "declared":
            self.used.update(raw["used"])
            self.unused.update(raw["unused"])
        elif kind == "spent":
            self.purse.spent += event["seconds"]
        else:
            lists = {"problem": self.problems, "note": self.notes, "nothing": self.nothing}
            if event["text"] not in lists[kind]:  # a module that is imported again says the same again
                lists[kind].append(event["text"])

    def leave(self, last: dict[str, Any], target: str, seed: int, said: str, reason: str) -> None:
        """Keep what was known of a rule that a child was left in, or died of."""
        place = last["place"]
        known = self.partial.pop(place, None)
        if known is None:
            report = Report(
                name=last["what"], verdict="undecided", findings=(), resolution=None, oracle="",
                capabilities={}, seed=seed,
            )  # fmt: skip
            known = Entry(report, target, *place[:2])
        decided = any(f.verdict in ("right", "wrong") for f in known.report.findings)
        finding = Finding("run", "note" if decided else "undecided", said, reason=reason)
        report = replace(known.report, findings=(*known.report.findings, finding))
        self.entries.setdefault(place, []).append(replace(known, report=report))

    def add_to(self, run: Run) -> None:
        """Put everything into the run; rules of a script stand in its order."""
        for place, entry in self.partial.items():  # a signal came first
            self.entries.setdefault(place, []).append(entry)
        places = [p for p in self.order if p in self.entries]
        places += sorted((p for p in self.entries if p not in places), key=lambda p: self.at.get(p, 0))
        run.entries += [entry for place in places for entry in self.entries[place]]
        run.problems += self.problems or (self.nothing[:1] if not self.entries else [])
        run.notes += self.notes
        run.used |= self.used
        run.unused |= self.unused
