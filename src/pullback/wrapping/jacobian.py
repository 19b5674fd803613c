"""Products with a Jacobian as users give it: an array, a sparse matrix of SciPy, or an operator.

A block belongs to one output and one argument, of sizes m and n. A pullback multiplies by its adjoint, since
cotangents are dL/d conj(z); a pushforward by the block itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.errors import CotangentCountError, CotangentShapeError
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.specs import show_shape

Array = np.ndarray[Any, Any]
Product = Callable[[Any, Array, Array, bool], Array]


def arranged(
    returned: Any, outputs: int, kept: Sequence[bool], names: Sequence[str], where: str, who: str
) -> list[list[Any]]:
    """Lay what was returned out: a list per output, with a block, or None, per argument that moves."""
    rows = [returned] if outputs == 1 else _listed(returned, outputs, where, who, "output")
    moving = sum(kept)
    laid = []
    for row in rows:
        if isinstance(row, Mapping):
            unknown = [name for name in row if name not in names]
            if unknown:
                raise _miscounted(
                    where, f"{who} gave a block for `{unknown[0]}`", f"names among {list(names)}"
                )
            laid.append([row.get(name) for name in names])
        elif isinstance(row, (tuple, list)):
            blocks = list(row)
            if len(blocks) == len(kept):  # one per tensor, also for those without a derivative
                blocks = [block for block, keep in zip(blocks, kept) if keep]
            if len(blocks) != moving:
                raise _miscounted(where, f"{who} gave {len(row)} blocks", f"{moving}: one per argument")
            laid.append(blocks)
        elif moving == 1:
            laid.append([row])
        else:
            raise _miscounted(where, f"{who} gave one {type(row).__name__}", f"{moving}: one per argument")
    return laid


def _listed(returned: Any, count: int, where: str, who: str, of: str) -> list[Any]:
    if isinstance(returned, Mapping) and len(returned) == count:
        return [returned[key] for key in sorted(returned)]
    if isinstance(returned, (tuple, list)) and len(returned) == count:
        return list(returned)
    found = (
        f"{len(returned)} of them" if isinstance(returned, (tuple, list)) else f"a {type(returned).__name__}"
    )
    raise _miscounted(where, f"{who} gave {found}", f"{count}: one per {of}, each with one per argument")


def _miscounted(where: str, found: str, expected: str) -> CotangentCountError:
    return CotangentCountError.about(
        where,
        found=found,
        expected=expected,
        fix="return a tuple in the order of the arguments, None for zero",
    )


def pulled(
    blocks: list[list[Any]], dys: Sequence[Array], likes: Sequence[Array], product: Product
) -> list[Array]:
    """Multiply cotangents by the adjoint: one cotangent per argument."""
    results = []
    for i, like in enumerate(likes):
        total: Any = np.zeros(like.shape, like.dtype)
        for row, dy in zip(blocks, dys):
            if row[i] is not None:
                total = total + _as(product(row[i], dy, like, True), like)
        results.append(np.asarray(total, like.dtype))
    return results


def pushed(
    blocks: list[list[Any]], tangents: Sequence[Array], likes: Sequence[Array], product: Product
) -> list[Array]:
    """Multiply tangents: one tangent per output."""
    results = []
    for row, like in zip(blocks, likes):
        total: Any = np.zeros(like.shape, like.dtype)
        for block, tangent in zip(row, tangents):
            if block is not None:
                total = total + _as(product(block, tangent, like, False), like)
        results.append(np.asarray(total, like.dtype))
    return results


def _as(array: Array, like: Array) -> Array:
    """Give an array the dtype of another: of what is real, the real part counts."""
    if array.dtype.kind == "c" and like.dtype.kind != "c":
        array = array.real
    return array.astype(like.dtype, copy=False)


def product(block: Any, vector: Array, like: Array, back: bool, where: str) -> Array:
    """Multiply by one block of a Jacobian, or by its adjoint."""
    m, n = (vector.size, like.size) if back else (like.size, vector.size)
    flat = vector.reshape(-1)
    verb = "rmatvec" if back else "matvec"
    if hasattr(block, verb) and not hasattr(block, "tocoo"):
        _require(tuple(block.shape), [(m, n)], where)
        return _shaped(getattr(block, verb)(flat), like)
    if isinstance(block, np.ndarray) or not hasattr(block, "__matmul__") or np.isscalar(block):
        block = np.asarray(block)
        y, x = (vector.shape, like.shape) if back else (like.shape, vector.shape)
        _require(block.shape, [(*y, *x), (m, n)], where)
        matrix = block.reshape(m, n)
        return _shaped((matrix.conj().T if back else matrix) @ flat, like)
    _require(tuple(block.shape), [(m, n)], where)
    matrix = block.conj().T if back and hasattr(block, "conj") else block.T if back else block
    return _shaped(matrix @ flat, like)


def _shaped(vector: Any, like: Array) -> Array:
    shaped: Array = np.asarray(vector).reshape(like.shape)
    return shaped


def _require(have: tuple[int, ...], wanted: list[tuple[int, ...]], where: str) -> None:
    if have not in wanted:
        ways = " or ".join(dict.fromkeys(map(show_shape, wanted)))
        raise CotangentShapeError.about(
            where,
            found=f"jacobian= gave shape {show_shape(have)}",
            expected=f"{ways}: the output's shape and then the argument's, or both flattened",
            fix="transpose it, if its rows belong to the argument",
        )


def elementwise(partial: Any, vector: Array, like: Array, back: bool, where: str) -> Array:
    """Multiply by partial derivatives, element by element."""
    partial = np.asarray(partial)
    try:
        if not back:
            return np.broadcast_to(partial * vector, like.shape)
        scaled = np.broadcast_to(np.conj(partial) * vector, vector.shape)
    except ValueError:
        scaled = None
    if scaled is None:
        raise CotangentShapeError.about(
            where,
            found=f"a partial derivative has shape {show_shape(partial.shape)}",
            expected=f"one that broadcasts to the output's {show_shape((vector if back else like).shape)}",
            fix="return the derivative element by element",
        )
    return np.asarray(NUMPY.unbroadcast(scaled, like))
