"""An entry as data for JSON, and back: it travels between processes and into files.

A number that JSON cannot write becomes a word. Within a version of the schema the data only grows, so a field
that an older pullback did not write has a default.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.checker.finding import Finding, Report
from pullback.report.entry import Entry
from pullback.report.printable import cleaned

SCHEMA = 1
NUMBERS = ("measured", "claimed", "resolution")


def to_data(entry: Entry) -> dict[str, Any]:
    """Give an entry as data for JSON."""
    report = entry.report.to_dict()
    report.pop("schema")
    report["resolution"] = _written(report["resolution"])
    for finding in report["findings"]:
        finding.update({name: _written(finding[name]) for name in NUMBERS})
    return {
        "target": entry.target, "path": entry.path, "line": entry.line, "signature": entry.signature,
        "calls": entry.calls, "qualified": entry.qualified, "excused": entry.excused, **report,
    }  # fmt: skip


def from_data(data: dict[str, Any]) -> Entry:
    """Read an entry back; what a program may have put into its texts is escaped."""
    data = cleaned(data)
    findings = tuple(Finding(**{**f, **{name: _read(f[name]) for name in NUMBERS}}) for f in data["findings"])
    report = Report(
        name=data["name"], verdict=data["verdict"], findings=findings, resolution=_read(data["resolution"]),
        oracle=data["oracle"], capabilities=data["capabilities"], seed=data["seed"], intent=data["intent"],
        source=data["source"], forwards=data["forwards"], pullbacks=data["pullbacks"],
        code=data.get("code", ""), docstring=data.get("docstring", ""),
        pictures=tuple(data.get("pictures", ())),
    )  # fmt: skip
    facts = (data[name] for name in ("target", "path", "line", "signature", "calls", "qualified", "excused"))
    return Entry(report, *facts)


def _written(number: float | None) -> float | str | None:
    if number is None or math.isfinite(number):
        return None if number is None else float(number)
    return str(float(number))


def _read(number: float | str | None) -> float | None:
    return None if number is None else float(number)
