"""One rule as the page shows it: the words are those of the terminal, put into named parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pullback.report.block import MEND, mendings, unfinished
from pullback.report.entry import Entry, worst
from pullback.report.html.picture import drawn
from pullback.report.html.shapes import Picture
from pullback.report.printable import printable
from pullback.report.text import row, word

if TYPE_CHECKING:
    from pullback.checker.finding import Finding

OPEN = 12  # cards that are open from the start, at most
TOLD = 12  # failures of one rule that are shown; the rest is counted
ANSWERS = 40  # other answers of one rule
ORDER = ("wrong", "surrogate", "not checked", "undecided", "as declared", "right", "known", "skipped")
KINDS = {
    "wrong": "wrong", "surrogate": "undecided", "not checked": "undecided", "undecided": "undecided",
    "as declared": "right", "right": "right", "known": "quiet", "skipped": "quiet",
}  # fmt: skip
MARKS = {"yes": "good", "no": "bad", "refused": "bad"}


@dataclass(frozen=True)
class Failure:
    """Hold one finding that needs a reader: what is wrong, or why nothing is said."""

    label: str
    sentence: str
    kind: str
    cause: str = ""
    where: str = ""
    measured: str = ""
    claimed: str = ""
    edit: str = ""
    patch: list[tuple[str, str]] = field(default_factory=list)  # kind and text of each line
    smallest: str = ""
    code: str = ""
    at: str = ""  # the call that shows it

    @property
    def diff(self) -> str:
        """Give the patch as it is copied."""
        return "\n".join(text for _, text in self.patch)


@dataclass(frozen=True)
class Card:
    """Hold one rule in the parts of the page."""

    number: int
    name: str
    word: str  # that it is counted by
    verdict: str
    claim: str
    resolution: str
    finest: float  # the resolution, to sort by
    oracle: str
    abilities: str
    where: str
    target: str
    failures: list[Failure]
    more: int  # failures that are not shown
    answers: list[tuple[str, str, str]]  # probe, verdict, sentence
    rest: int  # answers that are not shown
    table: list[tuple[str, str, str]]  # capability, answer, mark
    calls: list[tuple[str, str, str]]  # signature, verdict, resolution
    seen: int  # how often the target called it
    cost: str
    code: str
    docstring: str
    pictures: list[Picture]

    @property
    def kind(self) -> str:
        """Say what the rule needs: it gives the colour."""
        return KINDS[self.word]

    @property
    def rank(self) -> int:
        """Give the place of the verdict, what is wrong first."""
        return ORDER.index(self.word)

    @property
    def open(self) -> bool:
        """Tell whether the card is open from the start: where there is something to do."""
        return self.kind in ("wrong", "undecided") and self.number <= OPEN


def severity(entries: Sequence[Entry]) -> int:
    """Order rules: what is wrong first."""
    return ORDER.index(word(entries))


def card_of(entries: Sequence[Entry], number: int) -> Card:
    """Put one rule together from its calls."""
    entry = worst(entries)
    report = entry.report
    name, verdict, claim, resolution, oracle, abilities, where = row(entries)
    failures = _failures(entries)
    table = [(name, answer) for name, answer in report.capabilities.items() if answer]
    told = [*unfinished(report), *mendings(report)]
    answers = [f for f in report.findings if f.verdict in ("right", "note") and f not in told]
    cost = f"{report.forwards} forwards, {report.pullbacks} pullbacks" if report.forwards else ""
    return Card(
        number=number, name=name, word=word(entries), verdict=verdict, claim=claim, resolution=resolution,
        finest=1.0 if report.resolution is None else report.resolution, oracle=oracle, abilities=abilities,
        where=where, target=printable(entry.target), failures=failures[:TOLD], more=len(failures[TOLD:]),
        answers=[(_asked(f), f.answer or f.verdict, printable(f.sentence)) for f in answers[:ANSWERS]],
        rest=len(answers[ANSWERS:]),
        table=[(printable(name), printable(answer), MARKS.get(answer, "open")) for name, answer in table],
        calls=[_call(e) for e in entries if e.signature], seen=entry.calls, cost=cost,
        code=printable(report.code, lines=True), docstring=printable(report.docstring, lines=True),
        pictures=drawn(report.pictures),
    )  # fmt: skip


def _call(entry: Entry) -> tuple[str, str, str]:
    resolution = "" if entry.report.resolution is None else f"{entry.report.resolution:.0e}"
    return printable(entry.signature), entry.report.verdict, resolution


def _asked(finding: Finding) -> str:
    return printable((finding.capability or finding.probe).replace("_", " "))


def _failures(entries: Sequence[Entry]) -> list[Failure]:
    """List what needs a reader, the worst call first; what several calls say alike is told once."""
    found: list[Failure] = []
    told: set[str] = set()
    first = worst(entries)
    for entry in (first, *(e for e in entries if e is not first)):
        report = entry.report
        shown = report.failures or [f for f in report.findings if f.verdict == "undecided"]
        new = [
            _failure(finding, entry)
            for finding in [*shown, *unfinished(report), *mendings(report)]
            if entry is first or _label(finding) not in told
        ]
        told.update(failure.label for failure in new)
        found += new
    return found


def _label(finding: Finding) -> str:
    return printable((finding.cause or finding.reason or finding.probe).replace("_", " "))


def _failure(finding: Finding, entry: Entry) -> Failure:
    numbers = finding.measured is not None and finding.claimed is not None
    # The edit of a failure is told where its proof is.
    apart = finding.probe != MEND and any(f.patch == finding.patch for f in mendings(entry.report))
    patch = "" if apart else printable(finding.patch, lines=True)
    return Failure(
        label=_label(finding),
        sentence=printable(finding.sentence, lines=True),
        kind=MEND if finding.probe == MEND else "wrong" if finding.verdict == "wrong" else "undecided",
        cause=printable(finding.cause or ""),
        where=printable(finding.where, lines=True),
        measured=f"{finding.measured:.9g}" if numbers else "",
        claimed=f"{finding.claimed:.9g}" if numbers else "",
        edit=printable(finding.edit, lines=True),
        patch=[_line(text) for text in patch.splitlines()],
        smallest=printable(finding.smallest, lines=True),
        code=printable(finding.reproducer, lines=True),
        at=printable(entry.signature),
    )


def _line(text: str) -> tuple[str, str]:
    """Say what a line of a diff is: a head, added, removed, or around."""
    if text.startswith(("+++", "---", "@@", "diff ")):
        return "head", text
    return {"+": "added", "-": "removed"}.get(text[:1], "around"), text
