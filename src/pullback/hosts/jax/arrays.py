"""Array functions in JAX, as `Arrays` in `hosts/base.py` says: for host-neutral rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pullback.dtypes import WIDE
from pullback.hosts import refusals

abs = jnp.abs
argmax = jnp.argmax
arctan = jnp.arctan
clip = jnp.clip
erfc = jax.lax.erfc
floor = jnp.floor
isfinite = jnp.isfinite
maximum = jnp.maximum
round = jnp.round
sigmoid = jax.nn.sigmoid
sign = jnp.sign
softmax = jax.nn.softmax
sqrt = jnp.sqrt
stop = jax.lax.stop_gradient
tanh = jnp.tanh
where = jnp.where
zeros_like = jnp.zeros_like


def cast(value: Any, like: Any) -> Any:
    return value if isinstance(value, (int, float)) else jnp.asarray(value).astype(like.dtype)


def times(x: Any, weight: Any) -> Any:
    return jnp.maximum(x, jnp.finfo(x.dtype).min) * weight


def wide(x: Any) -> Any:
    return x.astype(WIDE[x.dtype.name]) if x.dtype.name in WIDE else x


def square_sum(x: Any, keep: int | None) -> Any:
    squares = jnp.real(x * jnp.conj(x)) if jnp.iscomplexobj(x) else x * x
    if keep is None:
        return jnp.sum(squares)
    return jnp.sum(squares, tuple(i for i in range(x.ndim) if i != keep % x.ndim), keepdims=True)


def one_hot(index: Any, like: Any, axis: int) -> Any:
    return jax.nn.one_hot(index, like.shape[axis], axis=axis, dtype=like.dtype)


def put(rows: Any, place: Any, x: Any) -> Any:
    """Put an array into the place of a row; in a loop of a program, XLA writes it in place."""
    return rows.at[place.astype(int)].set(x)


def first(rows: Any, place: Any) -> Any:
    """Give all rows: another shape would be compiled anew."""
    return rows


def shaped(x: Any, like: Any) -> Any:
    return x.reshape(like.shape)


def trail(x: Any, like: Any) -> Any:
    return x.reshape(x.shape + (1,) * max(jnp.ndim(like) - jnp.ndim(x), 0))


def held(inputs: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """Give arrays again, once others are computed: no compiler takes what comes of them for the same.

    They pass through a choice that is always the same and that no compiler knows. A barrier of XLA would do,
    but on a processor nothing is left of it when equal parts are merged.
    """
    never = jnp.zeros((), bool)
    for array in after:
        if jnp.issubdtype(array.dtype, jnp.floating):
            never = never | (jnp.sum(array.reshape(-1)[:1]) > jnp.inf)  # nothing is larger
    return [jnp.where(never, jnp.zeros_like(x), x) for x in inputs]


def report(bad: Any, text: str, counter: Any, result: Any) -> Any:
    """Add the number of places in `bad` to a counter; without one, say it on stderr in eager mode.

    JAX has no variables: the counter is an integer array of NumPy, of one element, that is added to in place,
    or a function that is handed the number. A compiled program calls it from outside:
    `jax.effects_barrier()` waits until all of it is counted.
    """
    count = jnp.sum(bad)
    if counter is None:
        if not isinstance(bad, jax.core.Tracer) and count:
            print(f"{text}: {int(count)} of {bad.size} values", file=sys.stderr)
        return result
    add = _adder(counter)
    if isinstance(count, jax.core.Tracer):
        jax.debug.callback(add, count)
    else:
        add(count)
    return result


def _adder(counter: Any) -> Callable[[Any], None]:
    if callable(counter):
        return lambda count: counter(int(count))
    if not (isinstance(counter, np.ndarray) and counter.size == 1 and counter.dtype.kind in "iu"):
        raise refusals.counter(
            counter,
            "an integer array of NumPy with one element, or a function that takes the number",
            "np.zeros((), int)",
        )

    def add(count: Any) -> None:
        np.add(counter, int(count), out=counter, casting="unsafe")

    return add
