"""What a check found, as data: findings, and the report that holds them.

Reports are read by people's terminals, by files and by tests; so everything here is a frozen value that
turns into dictionaries. The schema carries a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pullback.errors import WrongGradientError
from pullback.mend.patch import Mending
from pullback.report.block import verdict, written
from pullback.report.entry import Entry
from pullback.report.printable import printable
from pullback.view.subject import Arrays

SCHEMA = 1
Verdict = Literal["right", "wrong", "undecided"]
Note = Literal["right", "wrong", "undecided", "note"]  # of one finding
Answer = Literal["yes", "no", "refused", "undecided"]


@dataclass(frozen=True)
class Finding:
    """Hold one answer of one probe."""

    probe: str
    verdict: Note
    sentence: str
    cause: str | None = None
    edit: str = ""
    where: str = ""
    measured: float | None = None
    claimed: float | None = None
    resolution: float | None = None
    reason: str = ""  # why it is undecided, in a word
    oracle: str = ""
    point: str = "given"
    reproducer: str = ""
    capability: str = ""  # the row of the capability table that it answers, if any
    answer: Answer | None = None  # … and what it says there
    mended: bool = False  # the host put a wrong shape right in silence
    resized: bool = False  # seen at other lengths than the given ones
    last: bool = False  # nothing that is measured after it would mean anything
    smallest: str = ""  # the smallest inputs that show it, as the code to paste makes them
    patch: str = ""  # the edit as a unified diff, where one is known
    # Kept for the search of the cause and for shrinking; not part of the serialised form.
    inputs: Arrays | None = field(default=None, repr=False, compare=False)
    cotangents: Arrays | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Give the finding as data."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.compare}


def can(
    probe: str, capability: str, answer: Answer, sentence: str, verdict: Note = "note", **more: Any
) -> list[Finding]:
    """Answer one row of the table "can do"."""
    return [Finding(probe, verdict, sentence, capability=capability, answer=answer, **more)]


@dataclass(frozen=True, repr=False)
class Report:
    """Hold everything one check found; `print(report)` writes it as the command does."""

    name: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    resolution: float | None
    oracle: str
    capabilities: Mapping[str, str]
    seed: int
    intent: str = "the derivative"
    source: str = ""
    forwards: int = 0
    pullbacks: int = 0
    code: str = ""  # what the user wrote
    docstring: str = ""
    # What there is to see, as data: `checker/picture.py`.
    pictures: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)
    # What the search of an edit gave, where there was one; its words are findings. Not serialised.
    mending: Mending | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return written(self)

    def __repr__(self) -> str:
        return printable(f"<Report of {self.name}: {verdict(self)}>")

    def _repr_html_(self) -> str | None:
        """Show the report in a notebook; without Jinja2 it stays text."""
        from pullback.report.html import NoTemplatesError, fragment

        try:
            return fragment([Entry(self)])
        except NoTemplatesError:
            return None

    @property
    def causes(self) -> list[str]:
        """List the causes named, without repeats."""
        return list(dict.fromkeys(f.cause for f in self.findings if f.verdict == "wrong" and f.cause))

    @property
    def failures(self) -> list[Finding]:
        """List the findings that make the rule wrong."""
        return [f for f in self.findings if f.verdict == "wrong"]

    @property
    def patch(self) -> str:
        """Give the smallest edit that makes a wrong rule right, as a unified diff; empty where none is."""
        return next((f.patch for f in self.findings if f.patch), "")

    def raise_if_wrong(self) -> Report:
        """Raise WrongGradientError when the gradient is wrong; give the report back otherwise."""
        __tracebackhide__ = True  # pytest shows the test, not us
        if self.verdict == "wrong":
            first = self.failures[0]
            where = f"{self.name} ({self.source})" if self.source else self.name
            found = first.sentence
            if first.measured is not None:
                found += f"; measured {first.measured:.9g}, claimed {first.claimed:.9g}"
            raise WrongGradientError.about(
                where,
                found=found,
                expected=self.intent,
                why=f"{len(self.failures)} probe(s) failed; seed {self.seed}",
                fix=self.patch or first.edit or first.reproducer,
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """Give the report as data."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "source": self.source,
            "verdict": self.verdict,
            "intent": self.intent,
            "causes": self.causes,
            "resolution": self.resolution,
            "oracle": self.oracle,
            "capabilities": dict(self.capabilities),
            "seed": self.seed,
            "forwards": self.forwards,
            "pullbacks": self.pullbacks,
            "findings": [f.to_dict() for f in self.findings],
            "code": self.code,
            "docstring": self.docstring,
            "pictures": [dict(picture) for picture in self.pictures],
        }
