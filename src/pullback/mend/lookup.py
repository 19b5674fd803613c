"""Looking up: expressions that have a value, among thousands and their products, by one matrix product.

A gradient is linear in its cotangents. So what is linear in them is looked for as a product of one thing that
is and one that is not, and what does not depend on them as a product of two that do not.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pullback.mend.edit import parsed
from pullback.view.subject import Array

Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
Table: TypeAlias = "tuple[list[Entry], Array, list[tuple[int, int, bool]], Array]"
ROWS, MOVING, STILL = 170, 90, 240  # entries that are multiplied: any two, or one of each kind
COLUMNS = 192  # numbers by which a value is told; more would only cost memory and time
NICE = {
    **{sign * n: 0 for n in (1, 2, 3, 4) for sign in (1.0, -1.0)},
    **{sign / n: 0 for n in (2, 3, 4) for sign in (1.0, -1.0)},
}
NAMED = {
    math.pi: "3.141592653589793", math.sqrt(math.pi): "", math.sqrt(2): "", math.log(2): "", math.log(10): "",
    math.sqrt(2 * math.pi): "", math.sqrt(math.pi) / 2: "", 5.0: "5", 6.0: "6", 10.0: "10", 1.5: "1.5",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """Hold an expression and its values at the moments."""

    node: ast.expr
    arrays: tuple[Array, ...]
    size: int


@dataclass(frozen=True)
class Hit:
    """Hold an expression that has a value that was looked for."""

    node: ast.expr
    rank: float


class Lookup:
    """Hold what can be looked up, in the shapes in which it was asked for."""

    def __init__(self, entries: list[Entry], twins: tuple[int, int] | None) -> None:
        self.entries, self.twins = entries, twins
        self.tables: dict[tuple[Shapes, bool, bool | None], Table] = {}

    def moves(self, arrays: Sequence[Array]) -> bool | None:
        """Tell whether values depend on the cotangent; None where no two moments differ in it alone."""
        if self.twins is None:
            return None
        a, b = (arrays[i] for i in self.twins)
        known = np.isfinite(a) & np.isfinite(b)
        return not np.allclose(np.where(known, a, 0), np.where(known, b, 0), rtol=1e-9, atol=1e-12)

    def _rows(self, kept: list[Entry], moving: bool | None) -> tuple[Array, Array, Array, Array]:
        """Choose which entries are multiplied, and which are divided."""
        sized = [n for n, entry in enumerate(kept) if entry.size]
        if moving:
            known = [(n, self.moves(kept[n].arrays)) for n in sized]
            first = np.array([n for n, m in known if m][:MOVING], int)
            second = np.array([n for n, m in known if not m][:STILL], int)
            i, j = (part.reshape(-1) for part in np.meshgrid(first, second, indexing="ij"))
            return i, j, i, j
        few = np.array(sized[:ROWS], int)
        i, j = (few[part] for part in np.triu_indices(len(few)))
        p, q = (part.reshape(-1) for part in np.meshgrid(few, few, indexing="ij"))
        return i, j, p[p != q], q[p != q]

    def _table(self, shapes: Shapes, real: bool, moving: bool | None) -> Table:
        key = (shapes, real, moving)
        if key in self.tables:
            return self.tables[key]
        rows, kept = [], []
        for entry in sorted(self.entries, key=lambda e: e.size):
            if real and any(a.dtype.kind == "c" for a in entry.arrays):
                continue
            try:
                flat = [np.broadcast_to(a, s).reshape(-1) for a, s in zip(entry.arrays, shapes)]
            except ValueError:
                continue
            rows.append(_thinned(np.concatenate(flat)))
            kept.append(entry)
        if not rows:
            rows = [_thinned(np.zeros(sum(int(np.prod(s)) for s in shapes)))]
            kept = [Entry(parsed("0"), tuple(np.zeros(s) for s in shapes), 1)]
        table = np.stack(rows)
        i, j, p, q = self._rows(kept, moving)
        made = [(int(a), int(b), True) for a, b in zip(i, j)]
        made += [(int(a), int(b), False) for a, b in zip(p, q)]
        with np.errstate(all="ignore"):
            pairs = np.concatenate([table[i] * table[j], table[p] / table[q]])
        self.tables[key] = kept, table, made, pairs
        return self.tables[key]

    def lookup(self, targets: list[list[Array]], tolerance: float, most: int = 3) -> list[list[Hit]]:
        """Find the expressions that have these values, NaN meaning any, up to a constant."""
        found: list[list[Hit]] = [[] for _ in targets]
        groups: dict[Any, list[int]] = {}
        for n, target in enumerate(targets):
            real = all(a.dtype.kind != "c" for a in target)
            groups.setdefault((tuple(a.shape for a in target), real, self.moves(target)), []).append(n)
        with np.errstate(all="ignore"):
            for (shapes, real, moving), members in groups.items():
                kept, table, made, pairs = self._table(shapes, real, moving)
                flat = [_thinned(np.concatenate([a.reshape(-1) for a in targets[n]])) for n in members]
                same: dict[bytes, list[int]] = {}  # one value may be looked for in many places
                for n, row in zip(members, flat):
                    same.setdefault(row.tobytes(), []).append(n)
                firsts = {row.tobytes(): row for row in flat}
                wanted = np.stack([firsts[key] for key in same])
                slack = max(1e-6, tolerance)
                for rows, pick in (
                    (table, self._single(kept, slack)),
                    (pairs, self._double(kept, made, slack)),
                ):
                    for places, hits in zip(same.values(), _matches(rows, wanted, tolerance)):
                        picked = [hit for row, c in hits if (hit := pick(row, c)) is not None]
                        for n in places:
                            found[n] += picked
        return [sorted(hits, key=lambda h: h.rank)[:most] for hits in found]

    def _single(self, kept: list[Entry], slack: float) -> Callable[[int, float], Hit | None]:
        return lambda row, c: _scaled(kept[row].node, c, kept[row].size, slack)

    def _double(
        self, kept: list[Entry], made: list[tuple[int, int, bool]], slack: float
    ) -> Callable[[int, float], Hit | None]:
        def pick(row: int, c: float) -> Hit | None:
            i, j, product = made[row]
            a, b = kept[i], kept[j]
            if i == j and all(np.isin(values, (-1, 0, 1)).all() for values in a.arrays):
                return None  # what is one wherever it is not zero says nothing but where zeros were seen
            node = ast.BinOp(a.node, ast.Mult() if product else ast.Div(), b.node)
            return _scaled(node, c, a.size + b.size + 1, slack)

        return pick


def _thinned(row: Array) -> Array:
    """Keep some of many numbers, always the same ones."""
    if row.size <= COLUMNS:
        return row
    return row[np.sort(np.random.default_rng(row.size).choice(row.size, COLUMNS, replace=False))]


def _matches(rows: Array, wanted: Array, tolerance: float) -> Iterator[list[tuple[int, float]]]:
    """Give, of each wanted row, the rows that are a multiple of it, with the factor."""
    ok: Array = np.asarray(np.isfinite(rows).all(1))
    clean = np.where(ok[:, None], rows, 0)
    mask: Array = np.asarray(np.isfinite(wanted))
    aim = np.where(mask, wanted, 0)
    if clean.dtype.kind == "c" or aim.dtype.kind == "c":
        clean = np.ascontiguousarray(clean, np.complex128).view(np.float64)
        aim = np.ascontiguousarray(aim, np.complex128).view(np.float64)
        mask = np.repeat(mask, 2, axis=1)
    dots = clean @ aim.T
    masks, which = np.unique(mask, axis=0, return_inverse=True)  # most targets ask for all entries
    norms = ((clean**2) @ masks.T.astype(float))[:, which.reshape(-1)]
    sizes = (aim**2).sum(1)
    close: Array = dots**2 >= (1 - max(1e-11, 30 * tolerance**2)) * norms * sizes
    enough = mask.sum(1) >= 3
    for n in range(len(wanted)):
        if not enough[n] or not sizes[n] > 0:
            yield []
            continue
        hits = []
        for row in np.flatnonzero(close[:, n] & (norms[:, n] > 0))[:400]:
            factor = float(dots[row, n] / norms[row, n])
            gap = np.abs(factor * clean[row] - aim[n])[mask[n]]
            scale = np.abs(aim[n])[mask[n]]
            if (gap <= 20 * tolerance * (scale + 0.1 * scale.max())).all():
                hits.append((int(row), factor))
        yield hits


def _scaled(node: ast.expr, factor: float, length: int, slack: float) -> Hit | None:
    """Write an expression times a constant."""
    for nice in NICE:
        if abs(factor - nice) <= slack * abs(nice):
            odd = 1.5 if abs(nice) not in (1.0, 2.0, 0.5) else 0.0  # a name is better than its value
            bare = 2.0 if odd and isinstance(node, ast.Constant) else 0.0
            return Hit(times(node, nice), length + 1.25 * (nice != 1.0) + odd + bare)
    for value in NAMED:
        for ratio in (1.0, 0.5, 2.0, -1.0, -0.5, -2.0):
            for base in (value, 1 / value):
                if abs(factor - ratio * base) <= slack * abs(factor):
                    return Hit(times(node, ratio * base), length + 4)
    return None


def times(node: ast.expr, factor: float) -> ast.expr:
    """Write a node times a number as a person would."""
    if isinstance(node, ast.Constant) and node.value == 1 and factor > 0:
        if factor != int(factor) and 1 / factor == round(1 / factor):
            return ast.BinOp(node, ast.Div(), ast.Constant(round(1 / factor)))
        return ast.Constant(int(factor) if factor == int(factor) else factor)
    if factor == 1:
        return node
    if factor == -1:
        return ast.UnaryOp(ast.USub(), node)
    if factor < 0:
        return ast.UnaryOp(ast.USub(), times(node, -factor))
    if factor == int(factor):
        return ast.BinOp(ast.Constant(int(factor)), ast.Mult(), node)
    if 1 / factor == round(1 / factor):
        return ast.BinOp(node, ast.Div(), ast.Constant(round(1 / factor)))
    return ast.BinOp(ast.Constant(float(repr(factor))), ast.Mult(), node)
