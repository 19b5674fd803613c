"""The baseline: findings that are known, so that CI fails on what is new.

A finding is known by its rule's qualified name, the probe and the cause: nothing that moves when a line is
added above it, and no number that a seed changes. The file is written whole or not at all.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pullback import atomic
from pullback.checker.finding import Finding
from pullback.report.entry import Entry, Run

SCHEMA = 1
SHOWN = 5  # of the entries that no longer occur


class BaselineError(Exception):
    """A baseline that cannot be used; the text is one sentence for the user."""


class Known(NamedTuple):
    """Name one finding."""

    rule: str
    probe: str
    cause: str


class Baseline:
    """Compare a run with a file of known findings, or write one; without a file, leave the run as it is."""

    def __init__(self, path: str | None, *, writes: bool = False, strict: bool = False) -> None:
        if writes and path is None:
            raise BaselineError("--write-baseline needs a file: --baseline FILE")
        self.path, self.writes, self.strict = path, writes, strict
        # Before anything runs: a file that cannot be read is told at once.
        self.known = load(path) if path is not None and not writes else frozenset()

    def settle(self, run: Run) -> None:
        """Mark what is known, and say what no longer occurs; or write what was found."""
        if self.path is None:
            return
        if not self.writes:
            compared(run, self.known, strict=self.strict)
            return
        if run.problems:  # what could not be run is not known
            run.problems.append(f"the baseline {self.path} is not written")
            return
        try:
            count = write(self.path, run, strict=self.strict)
        except BaselineError as error:
            run.problems.append(str(error))
            return
        compared(run, load(self.path), strict=self.strict)
        run.notes.append(f"{count} known finding(s) written to {self.path}")


def load(path: str) -> frozenset[Known]:
    """Read a baseline."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BaselineError(f"the baseline {path} does not exist: --write-baseline makes it") from None
    except OSError as error:
        raise BaselineError(f"the baseline {path} cannot be read: {error.strerror}") from None
    except ValueError:  # of JSON, and of its encoding
        raise BaselineError(f"{path} is no baseline: it is not whole JSON; --write-baseline anew") from None
    schema = data.get("baseline") if isinstance(data, dict) else None
    if schema is None:
        raise BaselineError(f"{path} is no baseline of pullback; --write-baseline makes one")
    if schema != SCHEMA:
        raise BaselineError(f"the baseline {path} is of version {schema!r}, and this pullback reads {SCHEMA}")
    try:
        return frozenset(Known(**{key: str(entry[key]) for key in Known._fields}) for entry in data["known"])
    except (KeyError, TypeError):
        raise BaselineError(f"the baseline {path} is damaged; --write-baseline anew") from None


def write(path: str, run: Run, *, strict: bool = False) -> int:
    """Write what was found as known, and give the number of entries."""
    found = sorted({k for entry in run.entries for k in known_as(entry, strict=strict)})
    text = json.dumps({"baseline": SCHEMA, "known": [k._asdict() for k in found]}, indent=2) + "\n"
    try:
        atomic.replace(path, text.encode())
    except OSError as error:
        raise BaselineError(f"the baseline {path} cannot be written: {error.strerror}") from None
    return len(found)


def known_as(entry: Entry, *, strict: bool) -> list[Known]:
    """Name the findings for which an entry fails; an undecided one fails where that was asked for."""
    found: list[Finding] = entry.report.failures
    if not found and strict and entry.report.verdict == "undecided" and not entry.excused:
        found = [f for f in entry.report.findings if f.verdict == "undecided"]
    return [Known(entry.named, f.probe, f.cause or f.reason) for f in found]


def compared(run: Run, known: frozenset[Known], *, strict: bool = False) -> None:
    """Mark what is known in a run, and say what no longer occurs."""
    seen: set[Known] = set()
    entries: list[Entry] = []
    for entry in run.entries:
        found = known_as(entry, strict=strict)
        seen.update(found)
        entries.append(replace(entry, excused="known") if found and known.issuperset(found) else entry)
    run.entries[:] = entries
    gone = sorted(known - seen)
    if gone:
        named = ", ".join(f"{k.rule} ({k.cause or k.probe})" for k in gone[:SHOWN])
        more = f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else ""
        run.notes.append(f"in the baseline, but not in this run: {named}{more}; --write-baseline removes it")
