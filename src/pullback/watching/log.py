"""A log: what was heard of gradients while it was open, by places and steps.

A step of a place is one arrival of its gradient: one backward pass, where the pass goes through the place
once. Rows may still be on a device when they are taken; they are read when somebody asks. A log that is
closed stays readable, and can be pickled.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from types import TracebackType
from typing import Any, NamedTuple

from pullback.watching import framework, plot, table, trends, watchpoints
from pullback.watching.hearing import HEARING
from pullback.watching.record import History, Record, record
from pullback.watching.sinks import Pump, Sink
from pullback.watching.trends import Trend
from pullback.watching.watchpoints import Watchpoint


class First(NamedTuple):
    """Where something was seen first."""

    step: int
    name: str

    def __str__(self) -> str:
        return f"step {self.step}, at {self.name}"


class Log:
    """Hear gradients at named places, and in a model, while the block is open.

    Made by `pb.watch(model, every=10)`.
    """

    def __init__(self, model: Any = None, every: int = 1, sinks: Sequence[Sink] = ()) -> None:
        self.every = every
        self.lost = 0  # rows that a full buffer on a device has overwritten
        self.kinds: dict[str, str] = {}
        self._model = model
        self._sinks = list(sinks)
        self._lock = threading.RLock()
        self._records: dict[str, list[Record]] = {}
        self._ranks: dict[str, int] = {}
        self._counts: dict[int, int] = {}
        self._none: dict[str, int] = {}
        self._pending: list[tuple[int, int, Any, Callable[[Any], Any] | None]] = []
        self._awaited: dict[int, int] = {}  # watchpoint → when it ran forward
        self._clock = self._last = 0
        self._attached: Any = None
        self._pump: Pump | None = None
        self._said: list[str] = []

    # ── open and close ───────────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Log:
        framework.drain()  # what came before is not ours
        self._attached = framework.Attached(self._model)
        try:
            HEARING.enter(self)
            framework.opened()
            self._pump = Pump(self) if self._sinks else None
        except BaseException:
            HEARING.leave(self)
            self._attached.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.gather()
        finally:
            HEARING.leave(self)
            framework.opened()
            for text in self._attached.unheard(self):
                self.say(text)
            unmoved = [number for number in self._attached.weights if number not in self._counts]
            if len(unmoved) < len(self._attached.weights):  # others had a gradient
                for number in unmoved:
                    self._missed(watchpoints.of(number))
            self._attached.close()
            self._attached = self._model = None
            for number in [n for n, ran in self._awaited.items() if ran < self._last]:
                self._missed(watchpoints.of(number))
            self._awaited.clear()
            if self._pump is not None:
                self._pump.close()
            for sink in self._sinks:
                sink.close()
            self._sinks = []

    # ── what is heard ────────────────────────────────────────────────────────────────────────────────────

    def hears(self, point: Watchpoint) -> bool:
        """Tell whether a watchpoint is one of this log's."""
        return point.owner is None or (self._model is not None and point.owner() is self._model)

    def arrival(self, point: Watchpoint) -> int | None:
        """Count one arrival; give its number if it is one to be kept."""
        if not self.hears(point):
            return None
        with self._lock:
            step = self._counts.get(point.number, 0)
            self._counts[point.number] = step + 1
            self.arrives(point)
        return None if step % self.every else step

    def take(self, number: int, step: int, row: Any, read: Callable[[Any], Any] | None = None) -> None:
        """Keep a row; `read` brings it from its device when it is looked at."""
        with self._lock:
            self._pending.append((number, step, row, read))

    def late(self, number: int, step: int, row: Any) -> None:
        """Keep a row that was counted on a device, if it is one to be kept."""
        if self.hears(watchpoints.of(number)) and step >= 0 and step % self.every == 0:
            self.take(number, step, row)

    def awaits(self, point: Watchpoint) -> None:
        """Note that a watchpoint ran forward. If another was reached since it did so last, it was not."""
        if self.hears(point):
            with self._lock:
                if self._awaited.get(point.number, self._last) < self._last:
                    self._missed(point)
                self._clock += 1
                self._awaited[point.number] = self._clock

    def arrives(self, point: Watchpoint) -> None:
        """Note that a gradient came."""
        if self.hears(point):
            with self._lock:
                self._clock += 1
                self._last = self._clock
                self._awaited.pop(point.number, None)

    def missing(self, point: Watchpoint) -> None:
        """Count a gradient that is known to be None."""
        if self.hears(point):
            with self._lock:
                self._missed(point)

    def _missed(self, point: Watchpoint) -> None:
        self._none[point.name] = self._none.get(point.name, 0) + 1
        self.kinds.setdefault(point.name, point.kind)

    def say(self, text: str) -> None:
        """Remark something, once."""
        with self._lock:
            if text not in self._said:
                self._said.append(text)

    def look(self, gradients: Any, name: str = "gradient") -> Any:
        """Look at gradients that are at hand: a tensor, or a structure of them, each by its path.

        Gives them back. In a function of JAX that is compiled, go on with what is given back.
        """
        return framework.look(gradients, name)

    # ── what it says ─────────────────────────────────────────────────────────────────────────────────────

    def gather(self) -> list[Record]:
        """Read what is still on devices; give what is new."""
        if self._attached is not None:
            framework.drain()
        with self._lock:
            waiting, self._pending = self._pending, []
            new = []
            for number, step, row, read in waiting:
                point = watchpoints.of(number)
                found = record(point.name, step, row if read is None else read(row))
                # Rows that a device computes may overtake each other.
                bisect.insort(self._records.setdefault(point.name, []), found, key=attrgetter("step"))
                self._ranks[point.name] = point.rank
                self.kinds.setdefault(point.name, point.kind)
                new.append(found)
            for sink in self._sinks:
                sink.write(new)
        return new

    @property
    def names(self) -> list[str]:
        """The places, in the order of the backward pass; those that were never reached come last."""
        self.gather()
        heard = sorted(self._records, key=lambda name: self._ranks[name])
        return heard + [name for name in self._none if name not in self._records]

    def __getitem__(self, name: str) -> History:
        if name not in self.names:
            raise KeyError(f"{name!r}; this log has heard {', '.join(map(repr, self.names)) or 'nothing'}")
        return History(name, self._records.get(name, ()), self._none.get(name, 0))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[History]:
        return iter([self[name] for name in self.names])

    def __len__(self) -> int:
        return len(self.names)

    @property
    def first_nan(self) -> First | None:
        """The first step with a NaN, and the place that the backward pass reached first with it."""
        return self._first("nan")

    @property
    def first_inf(self) -> First | None:
        """The first step with an infinity, and the place that the backward pass reached first with it."""
        return self._first("inf")

    def _first(self, field: str) -> First | None:
        self.gather()
        bad = [r for records in self._records.values() for r in records if getattr(r, field)]
        if not bad:
            return None
        found = min(bad, key=lambda r: (r.step, self._ranks[r.name]))
        return First(found.step, found.name)

    def vanishing(self, factor: float = 1e3) -> list[Trend]:
        """List places whose gradient is a factor smaller than where the pass begins, or than it was."""
        return [trend for trend in trends.trends(self) if trend.ratio <= 1 / factor]

    def exploding(self, factor: float = 1e3) -> list[Trend]:
        """List places whose gradient is a factor larger than where the pass begins, or than it was."""
        return [trend for trend in trends.trends(self) if trend.ratio >= factor]

    @property
    def remarks(self) -> list[str]:
        """What is to be said of the log as a whole: what was lost, or could not be heard."""
        found = list(self._said)
        if self.lost:
            found.append(f"{self.lost} rows were overwritten on the device before they were read")
        return found

    def table(self) -> str:
        """Give all places as a table, in the order of the backward pass."""
        return table.text(self, list(self))

    def __str__(self) -> str:
        return table.worst(self)

    def __repr__(self) -> str:
        return f"<log of {len(self)} places, every {self.every} steps>"

    def svg(self) -> str:
        """Draw the size of the gradient at each place over the steps, and where there were NaN."""
        return plot.svg(self)

    _repr_svg_ = svg

    def _repr_html_(self) -> str:
        return table.html(self) + plot.svg(self)

    def __getstate__(self) -> dict[str, Any]:
        self.gather()
        aside: dict[str, Any] = {
            "_lock": None,
            "_model": None,
            "_sinks": [],
            "_attached": None,
            "_pump": None,
        }
        return {**vars(self), **aside, "_counts": {}, "_awaited": {}, "_pending": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()
