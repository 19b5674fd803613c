"""The report as lines that GitHub Actions turns into annotations at the rule's own line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pullback.report.block import mendings, reason
from pullback.report.entry import Run, worst
from pullback.report.printable import printable

if TYPE_CHECKING:
    from pullback.checker.finding import Finding


def lines(run: Run) -> Iterator[str]:
    """Write an error per wrong rule and per problem, a warning per undecided rule."""
    for group in run.rules():
        entry = worst(group)
        report = entry.report
        if report.verdict == "right" or entry.excused:
            continue
        failure = report.failures[0] if report.failures else None
        said = failure.sentence if failure else f"undecided: {reason(report)}"
        edit = f"\n{failure.edit}" if failure and failure.edit else ""
        edit += "".join(f"\n\n{_suggested(note)}" for note in mendings(report))
        cause = ", ".join(report.causes)
        title = f"{report.name}: {report.verdict}" + (f" ({cause})" if cause else "")
        path = entry.where.rpartition(":")[0]
        where = f"file={_property(path)},line={entry.line}," if entry.path else ""
        level = "error" if report.verdict == "wrong" else "warning"
        yield f"::{level} {where}title={_property(title)}::{_data(said + edit)}"
    for problem in run.problems:
        yield f"::error title=pullback check::{_data(problem)}"


def _suggested(note: Finding) -> str:
    return printable("\n".join(filter(None, (note.sentence, note.where, note.patch))), lines=True)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
