"""What the children of one target have told, put together in the order of its rules.

A rule that a child died of, or was left in, keeps what was known of it by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pullback.checker.finding import Finding, Report
from pullback.mend.patch import Mending, Patch, Span
from pullback.report.data import from_data
from pullback.report.entry import Entry, Run

Location = tuple[Any, ...]


@dataclass
class Purse:
    """Hold the CPU seconds that the checks of a run may take together; None is no limit."""

    budget: float | None
    spent: float = 0.0

    @property
    def left(self) -> float | None:
        """Give what is left."""
        return None if self.budget is None else max(self.budget - self.spent, 0.0)


def _with_edits(data: dict[str, Any], edits: list[dict[str, Any]]) -> Entry:
    """Read an entry, and the edits that came beside it."""
    entry = from_data(data)
    if not edits:
        return entry
    patches = tuple(
        Patch(
            **{
                **edit,
                "spans": tuple(Span(**span) for span in edit["spans"]),
                "points": tuple(edit["points"]),
            }
        )
        for edit in edits
    )
    return replace(entry, report=replace(entry.report, mending=Mending(patches)))


class Found:
    """Collect the findings of one target."""

    def __init__(self, purse: Purse) -> None:
        self.purse = purse
        self.at: dict[Location, int] = {}  # the number of the module that a rule stands in
        self.entries: dict[Location, list[Entry]] = {}
        self.partial: dict[Location, Entry] = {}
        self.order: tuple[Location, ...] = ()
        self.total = 0
        self.problems: list[str] = []
        self.nothing: list[str] = []
        self.notes: list[str] = []
        self.used: set[str] = set()  # tables of the configuration that spoke of a rule
        self.unused: set[str] = set()

    @property
    def done(self) -> tuple[Location, ...]:
        """List the rules that are not to be checked again."""
        return tuple(self.entries)

    def told(self, event: dict[str, Any], raw: dict[str, Any]) -> None:
        """Take one event; `raw` is the same before it was made fit to print."""
        kind = event["kind"]
        location = tuple(raw.get("location", ()))
        self.at.setdefault(location, event.get("at", 0))
        if kind == "entry":
            self.entries.setdefault(location, []).append(_with_edits(event["entry"], raw["edits"]))
            self.partial.pop(location, None)
        elif kind == "partial":
            self.partial[location] = from_data(event["entry"])
        elif kind == "rules":
            self.order = tuple(map(tuple, raw["locations"]))
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

    def leave(
        self, last: dict[str, Any], target: str, seed: int, said: str, reason: str, *, probe: str = "run"
    ) -> None:
        """Keep what was known of a rule that a child was left in, or died of."""
        location = last["location"]
        known = self.partial.pop(location, None)
        if known is None:
            report = Report(
                name=last["what"], verdict="undecided", findings=(), resolution=None, oracle="",
                capabilities={}, seed=seed,
            )  # fmt: skip
            known = Entry(report, target, *location[:2])
        decided = any(f.verdict in ("right", "wrong") for f in known.report.findings)
        finding = Finding(probe, "note" if decided else "undecided", said, reason=reason)
        report = replace(known.report, findings=(*known.report.findings, finding))
        self.entries.setdefault(location, []).append(replace(known, report=report))

    def add_to(self, run: Run) -> None:
        """Put everything into the run; rules of a script stand in its order."""
        for location, entry in self.partial.items():  # a signal came first
            self.entries.setdefault(location, []).append(entry)
        locations = [p for p in self.order if p in self.entries]
        locations += sorted((p for p in self.entries if p not in locations), key=lambda p: self.at.get(p, 0))
        run.entries += [entry for location in locations for entry in self.entries[location]]
        run.problems += self.problems or (self.nothing[:1] if not self.entries else [])
        run.notes += self.notes
        run.used |= self.used
        run.unused |= self.unused
