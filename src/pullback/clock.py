"""Stopping a script or a body that does not return, at any moment, until it hears.

An exception raised in the middle of a framework's C code ends the process: so the signal only asks for a
trace, and the stop is raised at the next line of Python that is not a framework's. A script may swallow it;
it is raised again, each time a line later. One that sleeps in C is stopped there after a few attempts. What a
framework computes behind the scenes is waited for here, and so the wait can be stopped, too.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from pullback import hosts

AGAIN = 0.2  # seconds between two attempts
LONGEST = 0.05  # seconds of one sleep
DIRECT = 10  # attempts after which the stop is raised where the signal arrives
UNSAFE = (*(f"{root}." for root in hosts.ROOTS), "pullback.", "importlib", "contextlib", "threading")


class Stop(BaseException):
    """The recording is over. No Exception: a script's `except Exception` must not swallow it."""


class Clock:
    """Stop the main thread after some seconds, or as soon as told.

    `cpu` counts the seconds that the process computes; `why` is raised; `due` may say that it is too early.
    """

    def __init__(
        self,
        *,
        cpu: bool = False,
        why: Callable[[], BaseException] = Stop,
        due: Callable[[], bool] = lambda: True,
    ) -> None:
        self.why = why
        self.due = due
        self.anywhere = cpu  # a body may stand in any module; a script is left by its own lines
        self.running = False
        self.rang = False
        self.attempts = 0
        self.left = 0  # lines to let pass in this attempt
        self.available = hasattr(signal, "setitimer")
        if self.available:
            names = ("ITIMER_PROF", "SIGPROF") if cpu else ("ITIMER_REAL", "SIGALRM")
            self.timer, self.number = (getattr(signal, name) for name in names)

    def ring(self, after: float = 1e-3) -> None:
        """Ask for a stop, and ask again until it is heard."""
        if self.available:
            signal.setitimer(self.timer, after, AGAIN)

    @contextlib.contextmanager
    def watching(self, seconds: float | None) -> Iterator[None]:
        """Let a block be stopped; the stop ends here."""
        self.running = True
        before = signal.signal(self.number, self._asked) if self.available else None
        try:
            if seconds is not None:
                self.ring(max(seconds, 1e-3))
            yield
        except Stop:
            pass
        finally:
            self.running = False
            sys.settrace(None)
            if self.available:
                signal.setitimer(self.timer, 0)
                signal.signal(self.number, before if before is not None else signal.SIG_DFL)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if not self.running or not self.due():
            return
        self.rang = True
        self.attempts += 1
        self.left = self.attempts - 1
        if self.attempts > DIRECT and frame is not None and _safe(frame):
            raise self.why()
        sys.settrace(self._trace)
        while frame is not None:
            if _safe(frame):
                frame.f_trace = self._trace
            frame = frame.f_back

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self.running or not _safe(frame):
            return None
        # What swallows the stop is some frame of the script: its own lines are the way out.
        if event == "line" and (
            self.anywhere or self.attempts == 1 or frame.f_globals.get("__name__") == "__main__"
        ):
            if self.left <= 0:
                raise self.why()
            self.left -= 1
        return self._trace


def is_free() -> bool:
    """Tell whether this is the main thread, and nobody else has the signal: a profiler, a check around it."""
    if not hasattr(signal, "SIGPROF") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGPROF) in (signal.SIG_DFL, signal.SIG_IGN, None)


def wait(ready: Callable[[], bool]) -> None:
    """Wait until something is ready, in short sleeps at first: the wait is at most doubled."""
    pause = 1e-5
    while not ready():
        time.sleep(pause)
        pause = min(2 * pause, LONGEST)


def _safe(frame: FrameType) -> bool:
    return frame.f_code is wait.__code__ or not (str(frame.f_globals.get("__name__", "")) + ".").startswith(
        UNSAFE
    )
