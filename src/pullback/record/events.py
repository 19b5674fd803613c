"""What the child tells its parent: one JSON line an event, in a file, so that a crash loses none.

rules     the rules of a script, in their order   phase    running · importing · checking · mending, and what
partial   what is known of a rule so far          entry    one rule checked
problem   why exit code 2                         note     what a user should know
done      the end was reached                     declared  tables of the configuration, heard or not

A script may replace what it likes, `json.dumps` and `os.write` as well, close every file and remove every
temporary folder: what is needed is taken hold of before it runs, and the parent reads an open file.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, BinaryIO

from pullback.report.data import to_data
from pullback.report.entry import Entry

_encoded = json.JSONEncoder(allow_nan=False).encode
_open, _write, _fstat, _mkdir = os.open, os.write, os.fstat, os.mkdir
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Events:
    """Write events to a file, each at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = _open(path, FLAGS)
        self.same = self._identity()

    def _identity(self) -> tuple[int, int]:
        found = _fstat(self.file)
        return found.st_dev, found.st_ino

    def _ready(self) -> None:
        """Open the file again if the script has closed it, or has another one in its place."""
        try:
            if self._identity() == self.same:
                return
        except OSError:
            pass
        inner = os.path.dirname(self.path)
        for folder in (os.path.dirname(inner), inner):
            with contextlib.suppress(FileExistsError):
                _mkdir(folder)
        self.file = _open(self.path, FLAGS)
        self.same = self._identity()

    def send(self, kind: str, **data: Any) -> None:
        """Write one event."""
        line = (_encoded({"kind": kind, **data}) + "\n").encode()
        self._ready()
        while line:
            line = line[_write(self.file, line) :]

    def note(self, text: str) -> None:
        """Say something of the target."""
        self.send("note", text=text)

    def problem(self, text: str) -> None:
        """Say what could not be done."""
        self.send("problem", text=text)

    def entry(self, entry: Entry, kind: str = "entry", **data: Any) -> None:
        """Write one checked rule, with the edits that were found for it."""
        mending = entry.report.mending
        edits = [asdict(patch) for patch in mending.patches] if mending else []
        self.send(kind, entry=to_data(entry), edits=edits, **data)


class Reader:
    """Make the file, and read events as they come."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file: BinaryIO = open(path, "w+b")  # noqa: SIM115  closed by its owner
        self.rest = b""

    def new(self) -> Iterator[dict[str, Any]]:
        """Give the events that came since the last time, from a file made anew as well."""
        yield from self._read()
        if os.path.exists(self.path) and not os.path.samestat(
            os.stat(self.path), os.fstat(self.file.fileno())
        ):
            self.file.close()
            self.file = open(self.path, "rb")  # noqa: SIM115
            yield from self._read()

    def _read(self) -> Iterator[dict[str, Any]]:
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in lines:
            event: dict[str, Any] = json.loads(line)
            yield event

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()
