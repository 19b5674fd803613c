"""The time that one check may take, in CPU seconds: other programs on the machine decide nothing.

It is looked at before every evaluation. A body that never returns is left by a signal, in the main thread and
at a line of Python, or while a result is waited for; one that is caught in compiled code elsewhere is left by
the command, which ends its process.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from pullback.clock import Clock, is_free

SHARE = 3  # the points of the checker's own get a third


class Spent(BaseException):
    """The budget is spent. No Exception: a probe that survives every failure of a body must end of this."""


class Budget:
    """Hold the seconds of one check, and what is left of them."""

    def __init__(self, seconds: float) -> None:
        self.limit = seconds
        self.cpu, self.wall = time.process_time(), time.monotonic()

    @property
    def seconds(self) -> float:
        """Give the time used: a single thread's at most, and a tenth of it for waiting."""
        wall = time.monotonic() - self.wall
        return max(min(time.process_time() - self.cpu, wall), wall / 10)

    @property
    def spent(self) -> bool:
        """Tell whether nothing is left."""
        return self.seconds >= self.limit

    @property
    def left(self) -> float:
        """Give the seconds that are left."""
        return max(self.limit - self.seconds, 0.0)

    def look(self) -> None:
        """Raise Spent when nothing is left."""
        if self.spent:
            raise Spent

    def extend(self) -> None:
        """Allow a little more, for the words about what was found."""
        self.limit = max(self.limit, self.seconds + self.limit / 4)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Leave a body that does not return, where that can be done."""
        if not is_free():
            yield
            return
        clock = Clock(cpu=True, why=Spent, due=lambda: self.spent)
        with clock.watching(max(self.limit - self.seconds, 1e-3)):
            yield
