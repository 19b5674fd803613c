"""What the child tells its parent: one JSON line an event, in a file, so that a crash loses none.

entry     one rule checked           phase    running · importing · checking, and what
problem   why exit code 2            note     what a user should know
done      the end was reached        declared tables of the configuration that spoke of a rule, and others
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from pullback.report.entry import Entry, to_plain


class Events:
    """Write events to a file, each at once."""

    def __init__(self, path: str) -> None:
        self.file: BinaryIO = open(path, "ab", buffering=0)  # noqa: SIM115  kept for the life of the child

    def send(self, kind: str, **data: Any) -> None:
        """Write one event."""
        line = json.dumps({"kind": kind, **data}, allow_nan=False) + "\n"
        os.write(self.file.fileno(), line.encode())

    def entry(self, entry: Entry) -> None:
        """Write one checked rule."""
        self.send("entry", entry=to_plain(entry))


class Reader:
    """Read events as they come."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rest = b""
        self.offset = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Give the events that came since the last time."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read()
        self.offset += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            event: dict[str, Any] = json.loads(line)
            yield event
