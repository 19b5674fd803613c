"""The surroundings of a search: silent, with a timer for every candidate and a limit of memory for all.

A candidate that asks for more gets the error that its framework has for it, and is one that failed.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pullback.clock import AGAIN, Clock, is_free

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

ROOM = 1 << 30  # bytes beside what the process has: eight arrays of all pairs of the inputs


class Slow(BaseException):
    """A candidate has run too long. No Exception: its own code must not swallow it."""


class Watch:
    """Hold the time at which what runs now must have returned."""

    def __init__(self) -> None:
        self.end = math.inf
        self.clock = Clock(cpu=True, why=Slow, due=lambda: time.process_time() >= self.end)

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Keep what candidates print and warn of to themselves, and be ready to stop them."""
        watching = self.clock.watching(AGAIN) if is_free() else contextlib.nullcontext()
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            limited(),
            watching,
        ):
            warnings.simplefilter("ignore")
            yield

    @contextlib.contextmanager
    def allowing(self, seconds: float) -> Iterator[None]:
        """Stop what runs longer than this, at a line of Python."""
        before, self.end = self.end, time.process_time() + seconds
        try:
            yield
        except Slow:
            sys.settrace(None)
            self.clock.attempts = 0
            raise
        finally:
            self.end = before


@contextlib.contextmanager
def limited(room: int = ROOM) -> Iterator[None]:
    """Let the process take this much more memory, and no more, where the system keeps such a limit."""
    held = _held()
    if resource is None or held is None:
        yield
        return
    soft, hard = before = resource.getrlimit(resource.RLIMIT_DATA)
    lowest = min([held + room, *(n for n in before if n != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _held() -> int | None:
    """Count the bytes that the limit would count; only Linux tells."""
    try:
        found = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None
