"""The surroundings of a search: silent, with a timer for every candidate."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import numpy as np

from pullback.clock import AGAIN, Clock


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
        watching = self.clock.watching(AGAIN) if _free() else contextlib.nullcontext()
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
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


def _free() -> bool:
    """Tell whether the signal of the clock is nobody else's."""
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGPROF) in (signal.SIG_DFL, signal.SIG_IGN, None)
