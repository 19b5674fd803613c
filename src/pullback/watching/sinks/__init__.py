"""Where a log goes while it is written: one file a kind, and the thread that brings it there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pullback.errors import OptionError
from pullback.watching.record import Record

if TYPE_CHECKING:
    from pullback.watching.log import Log


@runtime_checkable
class Sink(Protocol):
    """What records are written to."""

    def write(self, records: Sequence[Record]) -> None:
        """Write what is new."""

    def close(self) -> None:
        """Write nothing more."""


def sinks(to: Any) -> list[Sink]:
    """Make the sinks that a user names."""
    is_one = isinstance(to, (str, Path, Sink)) or not isinstance(to, Iterable)
    return [_sink(to)] if is_one else [_sink(one) for one in to]


def _sink(to: Any) -> Sink:
    if to == "live":
        from pullback.watching.sinks.live import Live

        return Live()
    if isinstance(to, (str, Path)):
        path = Path(to)
        if path.suffix == ".jsonl":
            from pullback.watching.sinks.jsonl import JsonLines

            return JsonLines(path)
        if not path.suffix:
            from pullback.watching.sinks.tensorboard import TensorBoard

            return TensorBoard(path)
    if isinstance(to, Sink):
        return to
    raise OptionError.about(
        "watch",
        found=f"to={to!r}"[:80],
        expected='a file "….jsonl", a folder for TensorBoard, "live", or an object with `write` and `close`',
        fix='to="gradients.jsonl"',
    )


class Pump:
    """Read what a log has heard, each second: a device has no way to tell."""

    def __init__(self, log: Log, seconds: float = 1.0) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(log, seconds), daemon=True)
        self._thread.start()

    def _work(self, log: Log, seconds: float) -> None:
        while not self._stop.wait(seconds):
            log.gather()

    def close(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()
