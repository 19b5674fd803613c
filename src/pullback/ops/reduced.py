"""What the rules that reduce have in common: their axes, their digits, and the largest value.

A reduction keeps its axes with length one while it computes, and drops them in the end. It computes in
float32 where its input is a float16 or a bfloat16: a sum of such numbers has too few digits and too small a
range. Only real floating inputs are taken.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pullback import hosts
from pullback.errors import OptionError, UnsupportedInputError
from pullback.namespace import namespace
from pullback.ops.precision import not_real
from pullback.options import require_axis

Axis: TypeAlias = "int | tuple[int, ...] | None"


def wide(verb: str, x: Any) -> Any:
    """Give a real floating input with the digits that a sum of it needs; refuse any other."""
    return hosts.of(x).arrays.wide(real(verb, x))


def real(verb: str, x: Any) -> Any:
    """Give an array of real floating numbers; refuse anything else."""
    if not hasattr(x, "dtype"):
        raise UnsupportedInputError.about(
            verb,
            found=f"an input that is a {type(x).__name__}",
            expected="an array, or a tensor",
            fix="make an array of it",
        )
    spec = hosts.of(x).spec(x)
    if spec.kind != "floating":
        raise not_real(verb, spec.dtype)
    return x


def narrow(y: Any, like: Any) -> Any:
    """Give a result the dtype of the input."""
    return hosts.of(like).arrays.cast(y, like)


def axes_of(verb: str, x: Any, axis: Axis) -> tuple[int, ...]:
    """Give the axes of x that are meant, from the first to the last; None means all of them."""
    shape = hosts.of(x).spec(x).shape
    if axis is None:
        if shape is None:
            raise OptionError.about(
                verb,
                found="axis=None, and an x of unknown rank",
                expected="an axis, or an x whose rank is known",
                fix="axis=-1",
            )
        return tuple(range(len(shape)))
    named = [require_axis(verb, "axis", one, x) for one in (axis if isinstance(axis, tuple) else (axis,))]
    found = sorted(named if shape is None else {one % len(shape) for one in named})
    if len(found) < len(named):
        raise OptionError.about(
            verb, found=f"axis={axis!r}", expected="each axis once", fix=f"axis={tuple(found)!r}"
        )
    return tuple(found)


def spread(y: Any, axes: tuple[int, ...]) -> Any:
    """Put back the axes that a reduction has dropped, with length one."""
    xp = namespace(y)
    for axis in axes:
        y = xp.expand_dims(y, axis=axis)
    return y


def dropped(y: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Drop the axes of length one that a reduction has kept, unless they are wanted."""
    return y if keepdims or not axes else namespace(y).squeeze(y, axis=axes)


def largest(x: Any, axes: tuple[int, ...]) -> Any:
    """Give the largest value along axes, cut off; 0 where there is none."""
    xp, host = namespace(x), hosts.of(x)
    shape = host.spec(x).shape
    if shape is not None and any(shape[axis] == 0 for axis in axes):
        return xp.sum(x, axis=axes, keepdims=True)
    return host.arrays.stop(xp.max(x, axis=axes, keepdims=True))
