"""What example arguments promise, and whether another point keeps it.

A rule may rest on what its arguments are: positive, ordered, sorted, distinct, whole numbers. A failure at a
point that breaks such a promise says nothing about the rule at the arguments it is for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from pullback.dtypes import double, is_complex, is_real_or_complex
from pullback.view.subject import Array, Arrays

Test: TypeAlias = Callable[[Array], bool]
Kept: TypeAlias = Callable[[Arrays], bool]


def promise(x: Array) -> str:
    """Name the structure that an example obviously has."""
    if x.size == 0 or not np.isfinite(x).all():
        return "fixed"
    return next((kind for kind, test in _STRUCTURES.items() if test(x)), "free")


def _square(x: Array) -> bool:
    return x.ndim >= 2 and bool(x.shape[-1] == x.shape[-2] > 1)


def _mask(x: Array) -> bool:
    return bool(np.isin(x, (0, 1)).all() and (x == 0).any() and (x == 1).any())


def _one_hot(x: Array) -> bool:
    return x.ndim > 1 and _mask(x) and bool((x.sum(-1) == 1).all())


def _symmetric(x: Array) -> bool:
    return _square(x) and np.allclose(x, np.conj(np.swapaxes(x, -1, -2)), rtol=1e-6, atol=1e-9)


def _triangular(x: Array) -> bool:
    lower = _square(x) and np.array_equal(x, np.tril(x))
    return bool(lower or (_square(x) and np.array_equal(x, np.triu(x))))


def _rows(x: Array) -> bool:
    return x.ndim >= 1 and x.shape[-1] > 1 and not is_complex(x.dtype)


_STRUCTURES: dict[str, Test] = {
    "positive definite": lambda x: _symmetric(x) and bool(np.linalg.eigvalsh(x).min() > 0),
    "symmetric mask": lambda x: _mask(x) and _symmetric(x),
    "mask": _mask,
    "symmetric": _symmetric,
    "triangular": _triangular,
    "simplex": lambda x: _rows(x) and bool((x >= 0).all()) and np.allclose(x.sum(-1), 1, rtol=1e-5),
    "unit length": lambda x: _rows(x) and np.allclose(np.square(x).sum(-1), 1, rtol=1e-5),
}


def structure(x: Array) -> str:
    """Name the structure of an example of any dtype."""
    return promise(x.astype(double(x.dtype)))


# What a rule that comes with a body need not rest on: where the plain gradient of the body is right and the
# claimed one is not, the rule fails at what its function takes.
WEAK = frozenset({"sign", "distinct", "whole", "sorted", "mask"})


def broken(
    given: Arrays, inputs: Arrays, names: Sequence[str], *, zero: bool = True
) -> tuple[str, str] | None:
    """Name the first promise of the given arguments that a point breaks: its kind, and in words.

    `zero` says that a zero breaks no promise of a sign: it is the edge of either, where formulas fail first.
    """
    weak = None
    for kind, said, kept in promises(given, names, zero=zero):
        if not kept(inputs):
            if kind not in WEAK:
                return kind, said
            weak = weak or (kind, said)
    return weak


def turned(given: Arrays, inputs: Arrays) -> list[int]:
    """List the inputs that are positive or negative as they are given, and not so at a point."""
    signs = [test for _, _, test in _STRICT]
    real = [
        k for k, x in enumerate(given) if x.size and is_real_or_complex(x.dtype) and not is_complex(x.dtype)
    ]
    return [k for k in real if any(test(given[k]) and not test(inputs[k]) for test in signs)]


def keeping(given: Arrays, inputs: Arrays, names: Sequence[str], *, zero: bool = True) -> Iterator[Arrays]:
    """Give points beside one that breaks a promise of the given arguments, which keep them all.

    The arguments that break one are put back; or those that are to be above others are moved there.
    """

    def count(at: Arrays) -> int:
        return sum(not test(at) for _, _, test in promises(given, names, zero=zero))

    if not count(inputs) or [x.shape for x in given] != [x.shape for x in inputs]:
        return
    back = inputs
    for k, x in enumerate(given):
        back = min(back, (*back[:k], x, *back[k + 1 :]), key=count)
    for point in (back, _lifted(given, inputs)):
        floats = ((x, y) for x, y in zip(given, point) if is_real_or_complex(x.dtype))
        if not count(point) and not all(np.array_equal(x, y) for x, y in floats):
            yield point


def _lifted(given: Arrays, inputs: Arrays) -> Arrays:
    """Move the given arguments that are above others up as far as they have to be, by a whole number."""
    point = list(inputs)
    real = [k for k, x in enumerate(given) if x.size and x.dtype.kind == "f"]
    for a, b in itertools.permutations(real, 2):
        if _below(given[a], given[b]) and not _below(point[a], point[b]):
            above = (point[a] - given[b]).max() + (given[b] - given[a]).min()
            point[b] = (given[b] + max(np.ceil(above), 0)).astype(given[b].dtype)
    return tuple(point)


def promises(given: Arrays, names: Sequence[str], *, zero: bool = True) -> Iterator[tuple[str, str, Kept]]:
    """List what the given arguments promise: the kind, the words, and the test of a point."""
    floats = [k for k, x in enumerate(given) if x.size and is_real_or_complex(x.dtype)]
    wide = {k: given[k].astype(double(given[k].dtype)) for k in floats}
    real = [k for k in floats if not is_complex(given[k].dtype) and np.isfinite(wide[k]).all()]
    for k in floats:
        shape = promise(wide[k])
        if "mask" in shape and _one_hot(wide[k]):
            yield "structure", f"`{names[k]}` has a single one in each row", _one(k, _one_hot)
        if "mask" in shape:
            yield "mask", f"`{names[k]}` is a mask", _shaped(k, "mask")
        if "symmetric" in shape:
            yield "structure", f"`{names[k]}` is symmetric", _shaped(k, "symmetric")
        elif "mask" not in shape and shape not in ("free", "fixed"):
            yield "structure", f"`{names[k]}` is of the kind: {shape}", _shaped(k, shape)
    for k in real:
        for kind, said, test in _TESTS if zero else (*_STRICT, *_TESTS):
            if test(wide[k]):
                yield kind, f"`{names[k]}` {said}", _one(k, test)
    for a in real:
        for b in real:
            if a != b and _below(wide[a], wide[b]):
                yield "order", f"`{names[a]}` is below `{names[b]}`", _two(a, b)
    for k, x in enumerate(given):
        if x.dtype.kind in "iu":
            for axis in range(x.ndim):
                if x.shape[axis] > 1 and _unique(x, axis):
                    yield "distinct", f"`{names[k]}` holds no entry twice", _along(k, axis)
            if _ascending(x):  # the ends of bags, the numbers of segments
                yield "sorted", f"`{names[k]}` is sorted", _one(k, _ascending)


def _one(k: int, test: Test) -> Kept:
    return lambda inputs: test(inputs[k].astype(np.float64))


def _shaped(k: int, kind: str) -> Kept:
    return lambda inputs: _STRUCTURES[kind](inputs[k].astype(double(inputs[k].dtype)))


def _two(a: int, b: int) -> Kept:
    return lambda inputs: _below(inputs[a].astype(np.float64), inputs[b].astype(np.float64))


def _along(k: int, axis: int) -> Kept:
    return lambda inputs: _unique(inputs[k], axis)


def _below(a: Array, b: Array) -> bool:
    try:
        return bool((a < b).all())
    except ValueError:  # shapes that do not go together
        return False


def _unique(x: Array, axis: int) -> bool:
    ordered = np.sort(x, axis=axis)
    return not (np.diff(ordered, axis=axis) == 0).any()


def _sorted(x: Array) -> bool:
    return x.ndim >= 1 and x.shape[-1] > 2 and bool((np.diff(x, axis=-1) > 0).all())


def _ascending(x: Array) -> bool:
    if x.ndim == 0 or x.shape[-1] < 3:
        return False
    steps = np.diff(x, axis=-1)
    return bool((steps >= 0).all() and steps.any())


_TESTS: tuple[tuple[str, str, Test], ...] = (
    ("sign", "is not negative", lambda x: bool((x >= 0).all())),
    ("sign", "is not positive", lambda x: bool((x <= 0).all())),
    ("sorted", "is sorted", _sorted),
    ("whole", "holds whole numbers", lambda x: bool((x == np.round(x)).all())),
    ("distinct", "holds no entry twice", lambda x: x.size > 1 and len(np.unique(x)) == x.size),
)
_STRICT: tuple[tuple[str, str, Test], ...] = (
    ("sign", "is positive", lambda x: bool((x > 0).all())),
    ("sign", "is negative", lambda x: bool((x < 0).all())),
)
