"""The report as JSON. The schema has a version, stands in `schema.json`, and only grows within a version."""

from __future__ import annotations

import json
from typing import Any

from pullback.report.data import SCHEMA, to_data
from pullback.report.entry import Run


def document(run: Run, *, strict: bool = False) -> dict[str, Any]:
    """Give a run as data."""
    from pullback import __version__

    return {
        "schema": SCHEMA,
        "pullback": __version__,
        "seed": run.seed,
        "targets": list(run.targets),
        "exit_code": run.exit_code(strict=strict),
        "problems": list(run.problems),
        "notes": list(run.notes),
        "rules": [to_data(entry) for entry in run.entries],
    }


def dumps(run: Run, *, strict: bool = False) -> str:
    """Write a run as JSON."""
    return json.dumps(document(run, strict=strict), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
