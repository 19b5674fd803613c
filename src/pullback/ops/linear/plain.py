"""Kernels as every host can have them: a host takes those of which it has none that is faster.

They write over nothing, and ask the host for its products and its wide dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pullback.namespace import namespace
from pullback.ops.linear.kernels import Array, kernels_of

HELD = 2**24


def pieces(w: Array, tokens: int) -> list[tuple[Any, Any]]:
    return [(0, kernels_of(w).length(w))]


def after(*arrays: Array) -> AbstractContextManager[Any]:
    return nullcontext()


def room(x: Array, w: Array, size: int) -> None:
    """Every product has memory of its own."""


def raw_product(a: Array, b: Array, bias: Array | None, room: Array | None) -> Array:
    k = kernels_of(a)
    z = k.product(a, b)
    return z if bias is None else z + k.wide(bias)


def softmax(zs: list[Array], level: Array) -> tuple[list[Array], Array, Array]:
    xp = namespace(level)
    es = [exponentials(z, level[:, None]) for z in zs]
    total = sum(xp.sum(e, axis=1) for e in es)
    return es, total, xp.log(total)


def exponentials(z: Array, level: Array) -> Array:
    return namespace(z).exp(z - level)


def slopes(e: Array, t: Array, total: Array) -> Array:
    t = e * t
    return t - e * (namespace(t).sum(t, axis=-1, keepdims=True) / total)


def times(dy: Array, parts: Sequence[Array]) -> list[Array]:
    return [dy * kernels_of(part).wide(part) for part in parts]


def fused(z: Array, labels: Array, **options: Any) -> None:
    """There is no such kernel."""


def added(dw: Array, g: Array, x: Array, start: Any) -> Array:
    return dw + kernels_of(x).across(g, x)


def weighed(x: Array, c: Array) -> Array:
    return kernels_of(x).wide(x) * c[:, None]


def scaled(e: Array, factors: Array) -> Array:
    return e * factors[:, None]
