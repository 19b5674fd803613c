"""A log as lines of JSON: one record a line, with its decades. JSON has no NaN: it is written as null."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pullback.watching.record import Record


class JsonLines:
    """Append records to a file."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.touch()  # a folder that is not there is told now

    def write(self, records: Sequence[Record]) -> None:
        """Write what is new."""
        lines = [json.dumps({k: _sayable(v) for k, v in record._asdict().items()}) for record in records]
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)

    def close(self) -> None:
        """Nothing stays open."""


def _sayable(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
