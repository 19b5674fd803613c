"""Who listens: the open logs of this process, and what they are told.

A gradient may arrive on any thread, and so may logs open and close: the tuple of open logs is replaced as a
whole. `open` is an attribute by itself: compilers guard on it, and a call outside of any log reads nothing
else.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pullback.watching import watchpoints

if TYPE_CHECKING:
    from pullback.watching.log import Log

Taker = tuple["Log", int]  # a log, and the step that this arrival is to it


class Hearing:
    """The open logs."""

    def __init__(self) -> None:
        self.open = False
        # what `torch.compile` reads at a named watchpoint
        self.compiled: Callable[[Any, str], Any] | None = None
        self.logs: tuple[Log, ...] = ()
        self._lock = threading.RLock()
        self._waiting: dict[tuple[int, int], collections.deque[list[Taker]]] = {}

    def enter(self, log: Log) -> None:
        with self._lock:
            self.logs, self.open = (*self.logs, log), True

    def leave(self, log: Log) -> None:
        with self._lock:
            self.logs = tuple(other for other in self.logs if other is not log)
            self.open = bool(self.logs)

    def takers(self, number: int) -> list[Taker]:
        """Count one arrival at a watchpoint; list the logs that want to know of it."""
        point = watchpoints.of(number)
        point.arrived()
        return [(log, step) for log in self.logs if (step := log.arrival(point)) is not None]

    def heard(self, number: int, row: Callable[[], Any], read: Callable[[Any], Any]) -> None:
        """Tell the logs of a gradient; its row is computed if one of them wants it, and read later."""
        takers = self.takers(number)
        if takers:
            made = row()
            for log, step in takers:
                log.take(number, step, made, read)

    # ── what asks first, and tells later, from within a compiled program ─────────────────────────────────

    def asked(self, number: int, at: int = 0) -> bool:
        """Tell whether a log wants the gradient at a watchpoint now; `at`: where in a program that stands."""
        takers = self.takers(number)
        if takers:
            with self._lock:
                self._waiting.setdefault((number, at), collections.deque()).append(takers)
        return bool(takers)

    def told(self, number: int, row: Any, at: int = 0) -> None:
        """Tell the logs that wanted it."""
        with self._lock:
            takers = self._waiting[number, at].popleft()
            if not self._waiting[number, at]:
                del self._waiting[number, at]
        for log, step in takers:
            log.take(number, step, row)

    # ── gradients that never come ────────────────────────────────────────────────────────────────────────

    def ran(self, number: int) -> None:
        """Note that a watchpoint ran forward, and may be differentiated."""
        point = watchpoints.of(number)
        for log in self.logs:
            log.awaits(point)

    def pulled(self, number: int) -> None:
        """Note that a gradient will come to a watchpoint, in a program that is being compiled."""
        point = watchpoints.of(number)
        point.arrived()
        for log in self.logs:
            log.arrives(point)

    def missing(self, number: int) -> None:
        """Count a gradient that is known to be None."""
        point = watchpoints.of(number)
        for log in self.logs:
            log.missing(point)

    def say(self, text: str) -> None:
        """Have the logs say something of themselves."""
        for log in self.logs:
            log.say(text)


HEARING = Hearing()


def note(number: int) -> None:
    """Note, while a compiler reads a program, that a watchpoint runs forward in it."""
    HEARING.ran(number)


note._dynamo_marked_constant = True  # type: ignore[attr-defined]
