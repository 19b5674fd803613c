"""What may go wrong at the border between pullback and a user's function, in words.

Arrays go in read-only; what comes out is checked against what was promised: structure, shape, dtype, NaN.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.errors import (
    ExternalError,
    ExternalMutationError,
    ExternalOutputError,
    ExternalTimeoutError,
)
from pullback.hosts.specs import same_shape, show_shape
from pullback.wrapping.shapes import ArraySpec, kind_of
from pullback.wrapping.task import Failure

Array = np.ndarray[Any, Any]
_LARGEST = 2**28  # bytes that the first call's arguments are summed up for


def frozen(array: Array) -> Array:
    """Give a view that cannot be written to."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def failed(failure: Failure, where: str, label: str) -> Exception:
    """Word what a function raised, with its own traceback."""
    suffix = f", {label}" if label else ""
    own = "its own traceback:\n" + failure.lines.rstrip() if failure.lines else ""
    if failure.timed_out:
        return ExternalTimeoutError.about(
            where,
            found=f"{failure.text}{suffix}",
            expected="a result within `timeout`",
            why=own.replace("its own traceback", "where it was then"),
            fix="raise timeout=, or give retries= to try again",
        )
    if failure.kind == "ValueError" and "read-only" in failure.text:
        return ExternalMutationError.about(
            where,
            found=f"it writes to one of its arguments{suffix}",
            expected="arguments that are read, and a new array that is returned",
            why="the memory belongs to the framework: others would see the change\n" + own,
            fix="x = x.copy()",
        )
    if failure.final:
        return ExternalError.about(
            where,
            found=f"{failure.text}{suffix}",
            expected="memory of its own for each call",
            why="one call may have overwritten what the other one returned",
            fix="make the array inside of the function, or keep one for each thread in a threading.local()",
        )
    return ExternalError.about(
        where, found=f"it raised {failure.kind}: {failure.text}{suffix}", expected="a result", why=own
    )


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────


def as_arrays(leaves: Sequence[Any], dtypes: Sequence[np.dtype[Any]], where: str) -> list[Array]:
    """Make arrays of what was returned; a Python number has any dtype."""
    arrays = []
    for leaf, dtype in zip(leaves, dtypes):
        if isinstance(leaf, np.ndarray):
            arrays.append(leaf)
        elif isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
            arrays.append(np.asarray(leaf, dtype if _holds(leaf, dtype) else None))
        elif leaf is None or isinstance(leaf, str) or callable(leaf):
            raise ExternalOutputError.about(
                where,
                found=f"it returned {'nothing' if leaf is None else f'a {type(leaf).__name__}'}",
                expected="an array, a number, or a structure of them",
                fix="return np.asarray(y)",
            )
        else:
            arrays.append(np.asarray(leaf))
    return arrays


def _holds(number: complex, dtype: np.dtype[Any]) -> bool:
    kind = kind_of(dtype)
    if isinstance(number, complex):
        return kind == "complex"
    return kind in ("floating", "complex") or not isinstance(number, float)


def check(
    arrays: list[Array],
    specs: Sequence[ArraySpec],
    *,
    where: str,
    what: str,
    label: str,
    cast: bool,
    lead: tuple[int, ...] = (),
) -> list[Array]:
    """Hold results against the specs that were promised; cast where that was asked for."""
    for i, (array, spec) in enumerate(zip(arrays, specs)):
        name = what if len(arrays) == 1 else f"{what} {i}"
        suffix = f", {label}" if label else ""
        if spec.shape is not None and not same_shape(array.shape, (*lead, *spec.shape)):
            batch = f" behind the batch axis of {lead[0]}" if lead else ""
            raise ExternalOutputError.about(
                where,
                found=f"{name} has shape {show_shape(array.shape)}{suffix}",
                expected=f"shape {show_shape((*lead, *spec.shape))}{batch}, as output= says",
                fix="return that shape, or change output=" + (", or leave batched= out" if lead else ""),
            )
        if array.dtype != spec.dtype:
            lossy = kind_of(array.dtype) == "complex" and kind_of(spec.dtype) != "complex"
            if cast and not lossy:
                arrays[i] = array.astype(spec.dtype)
                continue
            raise ExternalOutputError.about(
                where,
                found=f"{name} has dtype {array.dtype.name}{suffix}",
                expected=f"{spec.dtype.name}, as output= says",
                why="a silent cast would hide that it computes in another precision",
                fix=f"return y.astype(np.{spec.dtype.name}), or say cast=True, or change output=",
            )
    return arrays


def _has_nan(array: Array) -> bool:
    if array.dtype.kind not in "fc" or not array.size:
        return False
    least = np.minimum.reduce(array, axis=None)  # a NaN wins; and no sum overflows
    return bool(least != least)


def refuse_nan(
    results: Sequence[Array], inputs: Sequence[Array], *, where: str, what: str, label: str
) -> None:
    """Refuse a NaN among results."""
    for i, array in enumerate(results):
        if not _has_nan(array):
            continue
        name = what if len(results) == 1 else f"{what} {i}"
        suffix = f", {label}" if label else ""
        index = tuple(int(n) for n in np.argwhere(np.isnan(array))[0])
        at = f" at index {index if len(index) > 1 else index[0]}" if index else ""
        came = any(map(_has_nan, inputs))
        raise ExternalOutputError.about(
            where,
            found=f"{name} is NaN{at}{suffix}" + (", and so is one of its inputs" if came else ""),
            expected="numbers",
            why="a NaN spreads through every parameter in one step",
            fix='keep its arguments in its domain, or say nan="allow"',
        )


# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────


def checksum(arrays: Sequence[Array]) -> list[int] | None:
    """Sum up arrays, to see whether code that ignores read-only flags wrote to them."""
    if sum(a.nbytes for a in arrays) > _LARGEST or not all(a.flags.c_contiguous for a in arrays):
        return None
    contents: list[Any] = [a.reshape(-1).view(np.uint8) if a.size else b"" for a in arrays]
    return [zlib.crc32(content) for content in contents]


def refuse_mutation(
    before: list[int] | None, arrays: Sequence[Array], names: Callable[[int], str], where: str
) -> None:
    """Refuse a function after whose first call an argument is another one."""
    if before is None:
        return
    for i, (old, new) in enumerate(zip(before, checksum(arrays) or before)):
        if old != new:
            raise ExternalMutationError.about(
                where,
                found=f"it changed its argument `{names(i)}` in place",
                expected="arguments that are read, and a new array that is returned",
                why="the memory belongs to the framework: others see the change",
                fix=f"pass C code a copy: {names(i)} = {names(i)}.copy()",
            )
