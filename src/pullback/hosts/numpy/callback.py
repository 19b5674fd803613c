"""Running a foreign function on arrays: what every host does around the call.

Arrays go in read-only. Results are looked at before a framework gets them, since it would trust their shape
and dtype blindly. A result becomes a framework's memory without a copy only if nobody else holds it: a
workspace that the function keeps and writes to again, a cached result or an input handed through is copied.
The one thing that is not seen is the bare address of an array's memory, kept by foreign code.
"""

from __future__ import annotations

import collections
import functools
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import dtypes
from pullback.errors import DerivativeError, ExternalError
from pullback.hosts.foreign import Foreign
from pullback.hosts.specs import Spec, same_shape, show_shape

Array = Any  # np.ndarray of any dtype
# The maps that a call is inside, outermost first: which of its arrays carry an axis of each, in front.
Maps = tuple[tuple[bool, ...], ...]


def callback(foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
    """Run a foreign function on NumPy arrays."""
    return own(run(foreign, [read_only(tensor) for tensor in tensors], outputs))


def run(foreign: Foreign, arrays: Sequence[Array], outputs: Sequence[Spec], maps: Maps = ()) -> list[Array]:
    """Call a foreign function once, for all elements of all maps that it is inside; look at the results."""
    if not maps:
        results = list(foreign(arrays))
        _look(foreign, results, outputs, ())
        return results
    folded, mapped, lengths = fold(arrays, maps)
    size = math.prod(lengths)
    if size == 0 and all(known(spec) for spec in outputs):  # nothing to run, and no need to ask
        return [np.empty((*lengths, *(spec.shape or ())), dtype(spec.dtype)) for spec in outputs]
    results = list(foreign.batch(folded, mapped))
    _look(foreign, results, outputs, (size,))
    if len(maps) > 1:
        for i in range(len(results)):
            results[i] = results[i].reshape(*lengths, *results[i].shape[1:])
    return results


def read_only(array: Any) -> Array:
    """Give a view of an array that cannot be written to."""
    view = np.asarray(array)
    if view.flags.writeable:
        view = view.view()
        view.flags.writeable = False
    return view


@functools.cache
def dtype(name: str) -> np.dtype[Any]:
    """Find a dtype by the name that hosts have for it."""
    if name == "string":
        return np.dtype(object)
    known = dtypes.of_numpy(name)
    if known is None:
        raise no_dtype(name)
    return known


def no_dtype(name: str) -> ExternalError:
    """Say that a tensor cannot be an array."""
    return ExternalError.about(
        "external",
        found=f"a tensor of dtype {name}, which NumPy has no name for",
        expected="a dtype of NumPy, or one of the package ml_dtypes",
        fix="cast it to float32 or complex64 first, or pip install ml_dtypes",
    )


def known(spec: Spec) -> bool:
    """Tell whether every length of a shape is known."""
    return spec.shape is not None and None not in spec.shape


# ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────


def lengths(shapes: Sequence[Sequence[Any]], maps: Maps) -> list[Any]:
    """Give the length of every map, from the outermost in: they are the first axes of what is mapped."""
    found = []
    depths = [0] * len(shapes)
    for mapped in maps:
        length: Any = 0
        for i, here in enumerate(mapped):
            if here:
                length = shapes[i][depths[i]]
                depths[i] += 1
        found.append(length)
    return found


def fold(arrays: Sequence[Array], maps: Maps) -> tuple[list[Array], list[bool], list[int]]:
    """Make one leading axis of the axes of all maps; tell which arrays have it, and the lengths it is of.

    An array that is in some of the maps and not in others is repeated along those.
    """
    sizes = lengths([array.shape for array in arrays], maps)
    depths = [sum(mapped[i] for mapped in maps) for i in range(len(arrays))]
    folded = list(arrays)
    if len(maps) > 1:
        for i, depth in enumerate(depths):
            if depth:
                inner = arrays[i].shape[depth:]
                axes = [length if mapped[i] else 1 for length, mapped in zip(sizes, maps)]
                spread = np.broadcast_to(arrays[i].reshape(*axes, *inner), (*sizes, *inner))
                folded[i] = read_only(spread.reshape(math.prod(sizes), *inner))
    return folded, [depth > 0 for depth in depths], sizes


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────


def _look(foreign: Foreign, results: list[Any], outputs: Sequence[Spec], lead: tuple[int, ...]) -> None:
    """Refuse results that are not what was said; make arrays of numbers."""
    if len(results) != len(outputs):
        raise _wrong(foreign, f"{len(results)} results", f"{len(outputs)}, as its output says")
    for i, spec in enumerate(outputs):
        if type(results[i]) is not np.ndarray:
            if isinstance(results[i], np.ma.MaskedArray):  # whose mask an array would lose
                raise _wrong(foreign, "a masked array", "plain arrays: result.filled(…)")
            results[i] = np.asarray(results[i])
        shape = results[i].shape
        if results[i].dtype != dtype(spec.dtype) or not _fits(shape, spec.shape, lead):
            found = f"{results[i].dtype} {show_shape(shape)}"
            wanted = spec._replace(shape=None if spec.shape is None else (*lead, *spec.shape))
            name = "the result" if len(outputs) == 1 else f"result {i}"
            raise _wrong(foreign, f"{name} is {found}", f"{wanted}{', the batch in front' if lead else ''}")


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...] | None, lead: tuple[int, ...]) -> bool:
    if wanted is None:
        return shape[: len(lead)] == lead
    return same_shape(shape, (*lead, *wanted))


def _wrong(foreign: Foreign, found: str, expected: str) -> ExternalError:
    return ExternalError.about(foreign.where, found=found, expected=expected)


def own(results: list[Array]) -> list[Array]:
    """Copy the arrays that somebody else may write to, and those that are not laid out in C order."""
    for i in range(len(results)):
        if not is_alone(results, i):
            results[i] = np.array(results[i], order="C")
        elif not results[i].flags.c_contiguous:
            results[i] = np.asarray(results[i], order="C")
    return results


def is_alone(results: list[Array], i: int) -> bool:
    """Tell whether the list is the only one that holds an array and its memory."""
    if _holders(results, i) > _ONE or not results[i].flags.writeable:
        return False
    if results[i].base is None:
        return bool(results[i].flags.owndata)
    # NumPy gives a view of a view the first owner for its base. One that owns nothing has the memory of
    # something else than an array, which a C library may write to.
    if type(results[i].base) is not np.ndarray or not results[i].base.flags.owndata:
        return False
    return sys.getrefcount(results[i].base) <= _ONE


def _holders(results: list[Array], i: int) -> int:
    return sys.getrefcount(results[i])


_ONE = _holders([np.empty(1)], 0)  # what Python counts here for an array that only the list holds


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────

_kept: collections.deque[BaseException] = collections.deque(maxlen=16)


def telling(function: Callable[..., Any], *, chained: bool) -> Callable[..., Any]:
    """Keep the exceptions of a function, and raise what tells of them, for a framework that makes text of it.

    `chained` says whether the framework shows what an exception came from; if not, the text itself does.
    """

    @functools.wraps(function)
    def guarded(*args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            kept = error
        args = ()
        text = str(kept) if isinstance(kept, ExternalError) else f"{type(kept).__name__}: {kept}"
        if not chained:
            text = f"a function outside the framework raised\n{''.join(traceback.format_exception(kept))}"
        link: BaseException | None = kept
        while link is not None:  # the lines stay, the arrays of their variables go
            traceback.clear_frames(link.__traceback__)
            link = link.__cause__ or link.__context__
        _kept.append(kept)
        raise ExternalError(text) from (kept if chained else None)

    return guarded


def original(error: BaseException) -> BaseException | None:
    """Find the exception of the user's code that a framework's error tells of."""
    text = str(error)
    return next((e for e in reversed(_kept) if f"{type(e).__name__}: {e}" in text), None)


def not_differentiable(foreign: Foreign) -> DerivativeError:
    """Say that a foreign function has no derivative of its own."""
    return DerivativeError.about(
        foreign.where,
        found=f"a derivative of `{foreign.name}` was asked for, which runs outside the framework",
        expected="a function with a gradient of its own",
        why="a framework cannot see into it: the derivative would silently be missing",
        fix="give it a gradient, or pb.stop_gradient(…) what it is given",
    )
