"""Is every output judged? One that a program does not differentiate may have no gradient."""

from __future__ import annotations

from pullback.checker.cause import listed
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.view.subject import Subject

MOST = 3  # names that are said


@probe(rank=16)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Say which outputs are left out."""
    if not subject.unasked:
        return []
    named, more = list(subject.unasked[:MOST]), len(subject.unasked[MOST:])
    names = listed(named) if not more else f"{', '.join(f'`{n}`' for n in named)} and {more} more"
    said = f"no gradient comes from {names}, and this program asks for none: that was not judged"
    return [Finding("outputs", "note", said, where=", ".join(subject.unasked))]
