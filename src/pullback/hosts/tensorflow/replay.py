"""A second run of a function that finds what the first one found: its random numbers, and its variables.

Invariant: in a second run every random number is that of the first, a variable is read as the first run read
it, and no write of it is left. The functions of TensorFlow that draw, read and write are others for the time
of a run, on its thread. One that draws asks TensorFlow for a seed, which is kept, and draws from that without
state. In a graph, a write of a second run is a value of its own, for the reads that follow. In eager mode,
where operations read variables without a word to Python, the variables have their old values for the time of
the second run. What is hidden in a compiled function cannot be given again: it is heard, and refused.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from pullback.errors import DerivativeError
from pullback.hosts.tensorflow import private
from pullback.hosts.tensorflow.effects import CHANGES, DRAWS, Effects, effect
from pullback.hosts.tensorflow.stateless import STATELESS
from pullback.patched import Shared

_LARGEST = 2**31 - 1


class _Here(threading.local):
    run: Run | None = None


_here = _Here()


class Run:
    """A first run: it keeps the seeds that are drawn, and the values that variables have."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        self.seeds: list[Any] = []
        self.before: dict[int, tuple[Any, Any]] = {}  # a variable's handle, and the value that it had
        self.around = _here.run
        self.quiet = False  # while what is heard is known already

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """Ask the run around this one, or TensorFlow."""
        self.quiet, _here.run = True, self.around
        try:
            yield
        finally:
            self.quiet, _here.run = False, self

    @property
    def elsewhere(self) -> bool:
        """Whether a variable is being made, or a function traced that has a life of its own."""
        return tf.executing_eagerly() is not (self.graph is None)

    def require_outermost(self, does: str) -> None:
        """Refuse what happens in a loop or a branch of the graph."""
        if self.graph is not None and tf.compat.v1.get_default_graph() is not self.graph:
            raise not_given_again(self.where, f"{does} in a loop, a branch or a function of the graph")

    def seed(self, native: Callable[..., Any], seed: Any, seed2: Any) -> Any:
        """Draw the seed of the next numbers."""
        drawn = native(shape=[2], minval=0, maxval=_LARGEST, seed=seed, seed2=seed2)
        self.seeds.append(drawn)
        return drawn

    def read(self, native: Callable[..., Any], handle: Any, dtype: Any) -> Any:
        """Read a variable, and keep what it was."""
        value = native(handle, dtype)
        if self.graph is None or value.graph is self.graph:
            self.before.setdefault(key(handle), (handle, value))
        return value

    def write(self, native: Callable[[], Any], handle: Any, dtype: Any, after: Callable[[Any], Any]) -> Any:
        """Write to a variable, and keep what it was."""
        if key(handle) not in self.before and (
            self.graph is not None or tf.raw_ops.VarIsInitializedOp(resource=handle)
        ):
            self.before[key(handle)] = handle, private.resources.read_variable_op(handle, dtype)
        return native()

    def variables(self) -> contextlib.AbstractContextManager[None]:
        """Leave the variables as they are."""
        return contextlib.nullcontext()


class Second(Run):
    """A second run: it is handed what the first one kept, and the values of the variables that it read."""

    def __init__(self, first: Run, variables: Sequence[Any], values: Sequence[Any]) -> None:
        super().__init__(first.where)
        self.before = first.before | {key(v.handle): (v.handle, w) for v, w in zip(variables, values)}
        self.now = {place: value for place, (_, value) in self.before.items()}  # in a graph
        self._seeds = iter(first.seeds)

    def seed(self, native: Callable[..., Any], seed: Any, seed2: Any) -> Any:
        found = next(self._seeds, None)
        if found is None:
            raise not_given_again(self.where, "draws more random numbers when it runs again")
        return found

    def read(self, native: Callable[..., Any], handle: Any, dtype: Any) -> Any:
        if self.graph is None or key(handle) not in self.now:
            return native(handle, dtype)
        return tf.identity(self.now[key(handle)])

    def write(self, native: Callable[[], Any], handle: Any, dtype: Any, after: Callable[[Any], Any]) -> Any:
        if self.graph is None:
            return native()
        self.now[key(handle)] = after(self.now.get(key(handle)))
        return tf.no_op()

    @contextlib.contextmanager
    def variables(self) -> Iterator[None]:
        """Give the variables their old values, in eager mode."""
        if self.graph is not None:
            yield
            return
        now = []
        with private.stop_recording():
            for handle, value in self.before.values():
                now.append((handle, tf.raw_ops.ReadVariableOp(resource=handle, dtype=value.dtype)))
                tf.raw_ops.AssignVariableOp(resource=handle, value=value)
        try:
            yield
        finally:
            with private.stop_recording():
                for handle, value in now:
                    tf.raw_ops.AssignVariableOp(resource=handle, value=value)


class Looped(Run):
    """The rounds of a loop of the graph: each draws from a seed and its number, and reads outside of it.

    A variable that a loop reads would be kept for every round.
    """

    def __init__(self) -> None:
        super().__init__("a loop")
        self.outside, self._read = self.graph, dict[int, Any]()
        self._base = tf.random.uniform([2], maxval=_LARGEST, dtype=tf.int32)

    @contextlib.contextmanager
    def round(self, number: Any) -> Iterator[None]:
        """Say which round is traced."""
        self.graph, self._number, self._count = tf.compat.v1.get_default_graph(), number, 0
        yield

    def seed(self, native: Callable[..., Any], seed: Any, seed2: Any) -> Any:
        self._count += 1
        mixed = self._base + tf.stack([self._number, tf.constant(self._count)])
        return tf.random.stateless_uniform([2], mixed, 0, _LARGEST, tf.int32)

    def read(self, native: Callable[..., Any], handle: Any, dtype: Any) -> Any:
        if key(handle) not in self._read:
            with self.outside.as_default():  # type: ignore[union-attr]
                self._read[key(handle)] = native(handle, dtype)
        return self._read[key(handle)]

    def write(self, native: Callable[[], Any], handle: Any, dtype: Any, after: Callable[[Any], Any]) -> Any:
        raise not_given_again(self.where, "changes a variable in a loop of the graph")


def key(handle: Any) -> int:
    """Tell handles apart."""
    return int(getattr(handle, "_id", id(handle)))


def not_given_again(where: str, does: str) -> DerivativeError:
    """Say that a function cannot be run again as it ran."""
    return DerivativeError.about(
        where,
        found=f"the function {does}, and it is run again for its gradient",
        expected="random numbers and changes of variables that a second run can be given again",
        why="the gradient would be that of another function",
        fix="do that outside and pass the result, draw without state (tf.random.stateless_uniform), "
        "or call the Python function instead of the compiled one",
    )


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def running(run: Run) -> Iterator[None]:
    """Let a run stand between a function and TensorFlow, on this thread."""
    around, _here.run = _here.run, run
    with _random, _variables, run.variables():
        try:
            yield
        finally:
            _here.run = around


@contextlib.contextmanager
def as_later(where: str) -> Iterator[None]:
    """Let a function that keeps nothing draw, inside of a run, as it will when that one is run again."""
    with contextlib.nullcontext() if _here.run is None else running(Run(where)):
        yield


class Heard(Effects):
    """What an eager first run does, but for what it is known to do."""

    __slots__ = ("run",)

    def __init__(self, given: Sequence[Any], run: Run) -> None:
        super().__init__(given)
        self.run = run

    def __call__(self, op_type: Any, inputs: Any, attrs: Any, outputs: Any, *more: Any, **named: Any) -> Any:
        if self.run.quiet:
            return outputs
        return super().__call__(op_type, inputs, attrs, outputs, *more, **named)

    def require_known(self) -> None:
        """Refuse what a second run would do in another way."""
        if self.random or self.changed:
            raise _hidden(self.run, DRAWS if self.random else CHANGES)


def require_seen(run: Run, made: Sequence[Any]) -> None:
    """Refuse operations of a graph that call a function with effects: it was traced at another time."""
    for op in made:
        if op.type.endswith("PartitionedCall"):
            does = effect(op.get_attr("f").name)
            if does & (DRAWS | CHANGES):
                raise _hidden(run, does)


def _hidden(run: Run, does: int) -> DerivativeError:
    what = "draws random numbers" if does & DRAWS else "changes a variable or another resource"
    return not_given_again(run.where, f"{what} in a way that is not seen, as a compiled function does")


# ── TensorFlow's functions, others for the time of a run ─────────────────────────────────────────────────


def _drawing(name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that draws without state in the place of one that draws."""
    native = getattr(private.random, name)

    @functools.wraps(native)
    def drawn(*args: Any, seed: Any = 0, seed2: Any = 0, name: Any = None, **kwargs: Any) -> Any:
        run = _here.run
        if run is None or run.elsewhere:
            return native(*args, seed=seed, seed2=seed2, name=name, **kwargs)
        run.require_outermost("draws random numbers")
        with run.left():
            found = run.seed(private.random.random_uniform_int, seed, seed2)
        return draw(found, *args, **kwargs)

    return drawn


def _reading() -> dict[str, Callable[..., Any]]:
    """Give functions that read and write variables by way of the run."""
    native = private.resources
    read_natively = native.read_variable_op

    def read(resource: Any, dtype: Any, name: Any = None) -> Any:
        run = _here.run
        if run is None or run.elsewhere:
            return read_natively(resource, dtype, name)
        with run.left():
            return run.read(read, resource, dtype)

    def gather(native: Callable[..., Any], of_values: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(native)
        def gathered(resource: Any, indices: Any, dtype: Any, **kwargs: Any) -> Any:
            run = _here.run
            if run is None or run.elsewhere:
                return native(resource, indices, dtype, **kwargs)
            if run.graph is not None and isinstance(run, Second) and key(resource) in run.now:
                return of_values(run.now[key(resource)], indices)
            with run.left():
                return gathered(resource, indices, dtype, **kwargs)

        return gathered

    def writer(native: Callable[..., Any], after: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        @functools.wraps(native)
        def write(resource: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            run = _here.run
            if run is None or run.elsewhere:
                return native(resource, value, *args, **kwargs)
            run.require_outermost("changes a variable")
            value = tf.convert_to_tensor(value)
            with run.left():
                return run.write(
                    lambda: write(resource, value, *args, **kwargs),
                    resource,
                    value.dtype,
                    lambda before: after(before, value),
                )

        return write

    return {
        "read_variable_op": read,
        "resource_gather": gather(native.resource_gather, tf.gather),
        "resource_gather_nd": gather(native.resource_gather_nd, tf.gather_nd),
        "assign_variable_op": writer(native.assign_variable_op, lambda before, value: value),
        "assign_add_variable_op": writer(native.assign_add_variable_op, lambda before, value: before + value),
        "assign_sub_variable_op": writer(native.assign_sub_variable_op, lambda before, value: before - value),
    }


if private.AVAILABLE:
    _random = Shared(private.random, **{name: _drawing(name, draw) for name, draw in STATELESS.items()})
    _variables = Shared(private.resources, **_reading())
