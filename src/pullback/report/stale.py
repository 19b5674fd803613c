"""Declarations that no longer fit anything: said at the end of a run, and no failure.

A declaration excuses; one that excuses nothing waits for the next mistake.
"""

from __future__ import annotations

from collections.abc import Iterator

from pullback.report.entry import Run

NEEDLESS = "needless"  # the reason of a finding: declared as different, and not different


def stale(run: Run) -> Iterator[str]:
    """Say which declarations no longer fit, a sentence each."""
    for name in sorted(run.unused - run.used):
        yield f'the configuration speaks of "{name}", and no rule of this run has that name'
    told = set()
    for entry in run.entries:
        for finding in entry.report.findings:
            if finding.reason == NEEDLESS and entry.named not in told:
                told.add(entry.named)
                yield f"{entry.named}: {finding.sentence}"
