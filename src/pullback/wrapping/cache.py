"""Results remembered by the content of the arguments: bounded, off by default, hits counted.

Two calls are the same when their function, the bytes, shapes and dtypes of their arrays, their statics and
the values that the function reads by name are. The oldest result goes first. Results are kept read-only, so
that nobody changes what another one gets.

All that a cache is stands here: what `cache=` may be (`cache_of`), how a call is named (`Cache.naming`), and
where its results are kept (`Cache.find`, `Cache.keep`): elsewhere, in a subclass with these two.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.options import require_number
from pullback.rule import global_names
from pullback.wrapping import same

Array = np.ndarray[Any, Any]


def cache_of(function: Any, option: Any, where: str) -> Cache | None:
    """Make the cache that an option asks for; None if it asks for none."""
    require_number(where, "cache", option, least=0, fix="cache=16")
    return Cache(option, Reads(function)) if option else None


class Cache:
    """Keep the last results of a function."""

    def __init__(self, size: int, reads: Reads | None = None) -> None:
        self.size = size
        self._reads = reads
        self.hits = 0
        self.misses = 0
        self._kept: OrderedDict[Any, list[Array]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        blind = "; it does not see " + ", ".join(f"`{name}`" for name in self.unseen) if self.unseen else ""
        return f"<cache of {len(self)} of {self.size} results, {self.hits} hits, {self.misses} misses{blind}>"

    @property
    def unseen(self) -> list[str]:
        """Name what the function reads by name and may change without a word: call `clear` when it does."""
        return self._reads.unseen() if self._reads is not None else []

    def naming(self, statics: Any) -> Callable[[Sequence[Array]], Any]:
        """Give how calls with such statics are named by their arrays, while the function reads the same."""
        around = statics, self._reads.now() if self._reads is not None else ()
        return lambda arrays: (around, *map(same.fingerprint, arrays))

    def find(self, key: Any) -> list[Array] | None:
        """Look for a result; the one that is used is the newest again."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: Any, results: list[Array]) -> None:
        """Keep a result, and let the oldest go."""
        self._kept[key] = results
        while len(self._kept) > self.size:
            self._kept.popitem(last=False)

    def get(self, key: Any) -> list[Array] | None:
        """Give a remembered result, and count it."""
        with self._lock:
            found = self.find(key)
            self.hits += found is not None
            self.misses += found is None
            return found

    def put(self, key: Any, results: Sequence[Array]) -> list[Array]:
        """Remember a result; give it back as it will be handed out."""
        kept = []
        for result in results:
            view = result.view()
            view.flags.writeable = False
            kept.append(view)
        with self._lock:
            self.keep(key, kept)
        return kept

    def clear(self) -> None:
        """Forget every result and every count."""
        with self._lock:
            self._kept.clear()
            self.hits = self.misses = 0


class Reads:
    """What a function reads by name: the numbers, strings and functions of its globals and closure.

    What can change in place is left out, and so is what the function itself writes: a list that it counts
    its calls in does not make each of them another one.
    """

    def __init__(self, function: Any) -> None:
        code = getattr(function, "__code__", None)
        held = getattr(function, "__self__", None)
        self.itself = ["self"] if held is not None and not inspect.ismodule(held) else []
        self.space = getattr(function, "__globals__", {})
        self.cells: list[tuple[str, Any]] = []
        self.names: list[str] = []
        if code is None:
            return
        own = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_GLOBAL", "STORE_DEREF")}
        cells = zip(code.co_freevars, function.__closure__ or ())
        self.cells = [(name, cell) for name, cell in cells if name not in own]
        self.names = [name for name in global_names(code) if name not in own]

    def _found(self) -> Iterator[tuple[str, Any]]:
        for name in self.names:
            if name in self.space:
                yield name, self.space[name]
        for name, cell in self.cells:
            with contextlib.suppress(ValueError):  # a cell that is not filled yet
                yield name, cell.cell_contents

    def now(self) -> Any:
        """Name what is read, as it is now."""
        return tuple((name, key) for name, value in self._found() if (key := _lasting(value)) is not None)

    def unseen(self) -> list[str]:
        """Name what is read and can change in place."""
        return self.itself + [name for name, value in self._found() if _lasting(value) is None]


def _lasting(value: Any) -> Any:
    """Name a value that cannot change in place; None for any other."""
    hidden: list[Any] = []
    try:
        key = same.lasting(value, hidden)
    except same.MutableError:
        return None
    return None if hidden else key
