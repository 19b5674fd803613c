"""The user's functions as frameworks call them: flat arrays in, flat arrays out, one by one or in batches.

A routine runs one function of the user's. What it is called with and what becomes of the result is said by
`arguments` and `settle`; where and how often it runs is the same for all of them.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback import tree
from pullback.errors import ExternalOutputError
from pullback.wrapping import guard
from pullback.wrapping.shapes import ArraySpec, of_array
from pullback.wrapping.task import Failure, Job

if TYPE_CHECKING:
    from pullback.wrapping.site import Site

Array = np.ndarray[Any, Any]
_CHUNK = 2**26  # bytes of arguments that one call of a batched function is given


class Point(NamedTuple):
    """Where a function is evaluated, and what to name it in an error."""

    arrays: list[Array]
    label: str = ""


class Routine:
    """A function of the user's."""

    token: int  # from the host

    role = "function"
    what = "its output"

    def __init__(self, site: Site) -> None:
        self.site = site
        self.external = site.external
        self.options = site.external.options
        self.name = site.rule.name
        self.where = site.rule.where
        self.runner = self.external.runner
        self.batched = self.options.batched
        self.task = self.external.task(self.role)
        self.seen = False

    # ── what a kind of function says ─────────────────────────────────────────────────────────────────────

    def arguments(self, arrays: Sequence[Array]) -> tuple[list[Any], dict[str, Any]]:
        """Give the arguments of the user's function."""
        return self.site.plan.arguments(arrays)

    def settle(
        self, returned: Any, arrays: list[Array], label: str, lead: tuple[int, ...] = ()
    ) -> list[Array]:
        """Check what it returned, and make a flat list of it."""
        raise NotImplementedError

    def specs(self, arrays: list[Array]) -> Sequence[ArraySpec]:
        """Say what the results will be, for a batch without elements."""
        raise NotImplementedError

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        given = list(arrays)  # read-only: the host sees to that
        if not self.seen:
            return self._first(given)
        return self._one(given)

    def _one(self, arrays: list[Array]) -> list[Array]:
        args, kwargs = self.arguments(arrays)
        if self.runner.pool.given is None:
            returned = self.task(args, kwargs)
            if type(returned) is not Failure:
                return self.settle(returned, arrays, "")
            returned = self.runner.again(returned, self.task, Job(args, kwargs), self.failed)
        else:
            returned = next(self.runner.stream(self.task, [Job(args, kwargs)], self.failed))
        return self.settle(returned, arrays, "")

    def _first(self, arrays: list[Array]) -> list[Array]:
        """Run it for the first time, and see whether it leaves its arguments alone."""
        before = guard.checksum(arrays)
        results = self._one(arrays)
        guard.refuse_mutation(before, arrays, self.name_of, self.where)
        self.seen = True
        return results

    def name_of(self, index: int) -> str:
        """Name an array of the call."""
        return self.site.names[index]

    def failed(self, failure: Failure, job: Job) -> Exception:
        """Word a failure."""
        return guard.failed(failure, self.where, job.label)

    def stream(self, points: Iterable[Point]) -> Iterator[list[Array]]:
        """Evaluate at many points, as they are asked for, in their order."""
        if self.batched:
            yield from self._in_chunks(points)
            return
        order: deque[Point] = deque()

        def jobs() -> Iterator[Job]:
            for point in points:
                point = Point([guard.frozen(a) for a in point.arrays], point.label)
                order.append(point)
                yield Job(*self.arguments(point.arrays), point.label)

        for returned in self.runner.stream(self.task, jobs(), self.failed):
            point = order.popleft()
            yield self.settle(returned, point.arrays, point.label)

    def _in_chunks(self, points: Iterable[Point]) -> Iterator[list[Array]]:
        waiting = iter(points)
        for first in waiting:
            size = max(1, _CHUNK // max(1, sum(a.nbytes for a in first.arrays)))
            chunk = [first, *itertools.islice(waiting, size - 1)]
            stacked = [np.stack(parts) for parts in zip(*(p.arrays for p in chunk))]
            results = self.together(stacked, len(chunk))
            for i in range(len(chunk)):
                yield [result[i] for result in results]

    def together(self, arrays: Sequence[Array], count: int) -> list[Array]:
        """Run a batched function once, for all elements of a batch."""
        given = [guard.frozen(a) for a in arrays]
        label = f"for a batch of {count}"
        returned = self.runner.one(self.task, Job(*self.arguments(given), label), self.failed)
        return self.settle(returned, given, label, (count,))

    def batch(self, arrays: Sequence[Array], mapped: Sequence[bool]) -> list[Array]:
        """Run it for a batch."""
        count = batch_size(arrays, mapped)
        if self.batched and count:
            return self.together([spread(a, m, count) for a, m in zip(arrays, mapped)], count)
        if not count:
            return empty(self.specs(element(arrays, mapped, None)))
        return stacked(list(self.stream(elements(arrays, mapped, count))))


class Forward(Routine):
    """The function itself."""

    def known(self, arrays: Sequence[Array]) -> tuple[list[Array], Any]:
        """Run a call; give its results, and the layout and the specs that they have."""
        results = self(arrays)
        layout = self.site.layout(arrays)
        assert layout is not None
        return results, (layout, layout.promised)

    _ready: tuple[Any, list[Array]] | None = None

    def ahead(self, arrays: list[Array]) -> None:
        """Run a call before the framework does, which must know what it returns."""
        results = self(arrays)
        self._ready = _addresses(arrays), results

    def forget(self) -> None:
        """Let go of what was run ahead: nobody came for it, and its place in memory may be another's soon."""
        self._ready = None

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        if self._ready is not None:
            (addresses, results), self._ready = self._ready, None
            if addresses == _addresses(arrays):
                return results
        cache = self.external.cache
        if cache is None:
            return super().__call__(arrays)
        key = cache.naming(self.site.content())(arrays)
        found = cache.get(key)
        return cache.put(key, super().__call__(arrays)) if found is None else list(found)

    def stream(self, points: Iterable[Point]) -> Iterator[list[Array]]:
        cache = self.external.cache
        if cache is None:
            yield from super().stream(points)
            return
        named = cache.naming(self.site.content())
        order: deque[tuple[Any, list[Array] | None]] = deque()

        def missing() -> Iterator[Point]:
            for point in points:
                key = named(point.arrays)
                found = cache.get(key)
                order.append((key, found))
                if found is None:
                    yield point

        for results in super().stream(missing()):
            while order[0][1] is not None:
                yield order.popleft()[1] or []
            yield cache.put(order.popleft()[0], results)
        for _, found in order:
            yield found or []

    def settle(
        self, returned: Any, arrays: list[Array], label: str, lead: tuple[int, ...] = ()
    ) -> list[Array]:
        layout = self.site.layout([_without(a, lead) for a in arrays] if lead else arrays)
        if layout is not None and layout.tree is None and not lead and type(returned) is np.ndarray:
            (spec,) = layout.specs  # the common case: an array, as it was promised
            if returned.dtype == spec.dtype and returned.shape == spec.shape:
                if not self.options.allow_nan:
                    guard.refuse_nan([returned], arrays, where=self.where, what=self.what, label=label)
                return [returned]
        if layout is None:
            if lead:  # what one element gives is known from a run of its own
                self([a[0] for a in arrays])
            else:
                self.site.learn(arrays, returned)
            layout = self.site.layout([_without(a, lead) for a in arrays])
            assert layout is not None
        leaves = [returned] if layout.tree is None else tree.match(layout.tree, returned)
        if leaves is None or (layout.tree is None and isinstance(returned, (tuple, list, dict))):
            raise ExternalOutputError.about(
                self.where,
                found=f"it returned {_structure(returned)}" + (f", {label}" if label else ""),
                expected=_structure(tree.unflatten(layout.tree, layout.specs)) + ", as output= says",
                fix="return that structure, or change output=",
            )
        specs = layout.specs
        results = guard.as_arrays(leaves, [spec.dtype for spec in specs], self.where)
        results = guard.check(
            results, specs, where=self.where, what=self.what, label=label, cast=self.options.cast, lead=lead
        )
        if not self.options.allow_nan:
            guard.refuse_nan(results, arrays, where=self.where, what=self.what, label=label)
        return results

    def specs(self, arrays: list[Array]) -> Sequence[ArraySpec]:
        layout = self.site.layout([of_array(a) for a in arrays])
        if layout is None:
            self(arrays)
            layout = self.site.layout([of_array(a) for a in arrays])
            assert layout is not None
        return layout.specs


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────


def batch_size(arrays: Sequence[Array], mapped: Sequence[bool]) -> int:
    """Give the length of the batch axis."""
    return next(len(a) for a, m in zip(arrays, mapped) if m)


def spread(array: Array, mapped: bool, count: int) -> Array:
    """Give an array a batch axis, without a copy."""
    return array if mapped else np.broadcast_to(array, (count, *array.shape))


def element(arrays: Sequence[Array], mapped: Sequence[bool], index: int | None) -> list[Array]:
    """Give one element of a batch; of an empty one, ones in its shape."""
    if index is None:
        return [np.ones(a.shape[1:], a.dtype) if m else a for a, m in zip(arrays, mapped)]
    return [a[index] if m else a for a, m in zip(arrays, mapped)]


def elements(arrays: Sequence[Array], mapped: Sequence[bool], count: int) -> Iterator[Point]:
    """Give the elements of a batch, named."""
    for i in range(count):
        yield Point(
            [np.asarray(a) for a in element(arrays, mapped, i)], f"element {i} of {count} of the batch"
        )


def stacked(results: Sequence[Sequence[Array]]) -> list[Array]:
    """Put the results of a batch together."""
    return [np.stack(parts) for parts in zip(*results)]


def empty(specs: Sequence[ArraySpec]) -> list[Array]:
    """Give the results of a batch without elements."""
    return [np.empty((0, *(n or 0 for n in spec.shape or ())), spec.dtype) for spec in specs]


def _without(array: Array, lead: tuple[int, ...]) -> ArraySpec:
    return ArraySpec(array.shape[len(lead) :], array.dtype)


def _addresses(arrays: Sequence[Array]) -> Any:
    return [(a.__array_interface__["data"][0], a.shape, a.strides) for a in arrays]


def _structure(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(repr, value))}"
    if isinstance(value, ArraySpec):
        return "one array"
    return "nothing" if value is None else f"a {type(value).__name__}"
