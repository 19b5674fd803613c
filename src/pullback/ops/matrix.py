"""What the rules of matrices have in common: the last two axes, their digits, and symmetry.

Matrices stand in the last two axes; axes in front of them are a batch. float16 and bfloat16 are computed in
float32, for no framework factors them. A symmetric input counts by its symmetric part, (a + aᵀ)/2: so its
gradient is right for every direction, and symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import hosts
from pullback.errors import SolutionError, UnsupportedInputError
from pullback.hosts.specs import show_shape
from pullback.namespace import namespace
from pullback.ops.reduced import largest, wide


def matrix(verb: str, a: Any, *, square: bool = True) -> Any:
    """Give matrices with the digits to compute in; refuse what is none, or not square where it must be."""
    shape = hosts.of(a).spec(a).shape
    lengths = () if shape is None else shape[-2:]
    uneven = len(lengths) == 2 and None not in lengths and lengths[0] != lengths[1]
    if shape is not None and (len(shape) < 2 or (square and uneven)):
        raise UnsupportedInputError.about(
            verb,
            found=f"an input of shape {show_shape(shape)}",
            expected=f"{'square matrices' if square else 'matrices'} in the last two axes",
            fix="a[..., None] makes columns of vectors",
        )
    return wide(verb, a)


def confirmed(verb: str, found: Any, given: Sequence[Any], expected: str) -> Any:
    """Give what was found of matrices; an error in eager mode if it is not finite, and what was given is.

    Other hosts than a silent one raise by themselves. The values of a program are not known yet.
    """
    host, xp = hosts.of(found), namespace(found)
    if not host.silent or not all(map(host.readable, (found, *given))):
        return found
    if not xp.all(xp.isfinite(found)) and all(xp.all(xp.isfinite(x)) for x in given):
        raise SolutionError.about(
            verb,
            found="a matrix for which the result is not finite",
            expected=expected,
            why="there is no result, or none that the dtype can hold",
            fix="add a multiple of the identity, or give another matrix",
        )
    return found


def transposed(a: Any) -> Any:
    """Exchange rows and columns."""
    return namespace(a).matrix_transpose(a)


def symmetric(a: Any) -> Any:
    """Give the symmetric part."""
    return (a + transposed(a)) / 2


def product(*factors: Any) -> Any:
    """Multiply matrices, from the left."""
    found = factors[0]
    for factor in factors[1:]:
        found = namespace(found).matmul(found, factor)
    return found


def width(values: Any, broadening: float | None) -> Any:
    """Give the width by which 1/gap is broadened: relative to the largest value, and as one more axis.

    A gap g is off by (width/g)². A gap that is roundoff is amplified by g/width². At the root of roundoff
    both are roundoff.
    """
    xp = namespace(values)
    if broadening is None:
        broadening = float(xp.finfo(values.dtype).eps) ** 0.5
    return broadening * largest(xp.abs(values), (-1,))[..., None]


def broadened(gaps: Any, width: Any) -> Any:
    """Give g / (g² + w²): 1/g away from 0, and 0 at 0, where its slope is 0, too.

    By the formula that is 1/w². A value less itself stands on every diagonal: 1/w² times its rounding is no
    slope of anything. Written as 1 / (g + w·(w/g)), for squares leave the range of the dtype where 1/g does
    not; what is far below w counts as 0.
    """
    xp = namespace(gaps)
    one = xp.abs(gaps) <= 1e-30 * width
    safe = xp.where(one, xp.ones_like(gaps), gaps)
    return xp.where(one, xp.zeros_like(gaps), 1 / (safe + width * (width / safe)))


def signs(v: Any) -> Any:
    """Give 1 or −1 for each column: what makes its largest entry positive."""
    xp, arrays = namespace(v), hosts.of(v).arrays
    v = arrays.stop(v)
    if v.shape[-2] == 0:
        return xp.ones_like(xp.sum(v, axis=-2, keepdims=True))
    chosen = xp.sum(arrays.one_hot(xp.argmax(xp.abs(v), axis=-2), v, -2) * v, axis=-2, keepdims=True)
    return xp.where(chosen < 0, -xp.ones_like(chosen), xp.ones_like(chosen))
