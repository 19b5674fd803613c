"""The bank: expressions in the program's own words, with their values at all moments, found by value.

Built of the names in reach and of every part of the forward and of the gradient: functions of one tensor,
sums and means over axes, then products and quotients of any two. A value is looked up among thousands of them
by one matrix product, up to a constant factor.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import binary, filled, parsed
from pullback.mend.region import own
from pullback.mend.tree import size
from pullback.view.subject import Array

Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
ATOMS, ROWS = 40, 170
NICE = {
    **{sign * n: 0 for n in (1, 2, 3, 4) for sign in (1.0, -1.0)},
    **{sign / n: 0 for n in (2, 3, 4) for sign in (1.0, -1.0)},
}
NAMED = {
    math.pi: "3.141592653589793", math.sqrt(math.pi): "", math.sqrt(2): "", math.log(2): "", math.log(10): "",
    math.sqrt(2 * math.pi): "", math.sqrt(math.pi) / 2: "", 5.0: "5", 6.0: "6", 10.0: "10", 1.5: "1.5",
}  # fmt: skip
with np.errstate(all="ignore"):
    NUMPY: dict[str, Callable[[Any], Any]] = {
        "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
        "sinh": np.sinh, "cosh": np.cosh, "sqrt": np.sqrt, "abs": np.abs, "sign": np.sign,
        "square": np.square, "reciprocal": lambda x: 1 / x, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "log1p": np.log1p, "expm1": np.expm1, "rsqrt": lambda x: 1 / np.sqrt(x),
        "softplus": lambda x: np.logaddexp(0, x), "relu": lambda x: np.maximum(x, 0), "asin": np.arcsin,
        "atan": np.arctan, "floor": np.floor, "positive": lambda x: (x > 0).astype(float),
        "erf": np.vectorize(math.erf, otypes=[float]),
        "softmax": lambda x: np.exp(x - x.max(-1, keepdims=True))
        / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True),
        "conj": np.conj, "bell": lambda x: np.exp(-x * x),
    }  # fmt: skip
USUAL = {"exp", "log", "square", "sqrt", "abs", "sign", "reciprocal", "sin", "cos", "tanh", "sigmoid", "conj"}
COMPLEX = {"exp", "log", "sin", "cos", "tanh", "sqrt", "square", "reciprocal", "conj"}


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


class Bank:
    """Hold the expressions for a variant of a region."""

    def __init__(self, bench: Bench, base: Tried) -> None:
        self.bench = bench
        self.seen: set[bytes] = set()
        self.smooth = [i for i, moment in enumerate(bench.moments) if not moment.bounds]
        self.entries: list[Entry] = []
        self.tables: dict[Shapes, tuple[list[Entry], Array, list[tuple[int, int, bool]], Array]] = {}
        with np.errstate(all="ignore"):
            self._build(base)

    # ── building ─────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, node: ast.expr, arrays: list[Array] | None, length: int | None = None) -> Entry | None:
        if arrays is None or arrays[0].dtype.kind not in "fciub":
            return None
        wide = tuple(
            a if a.dtype.kind == "c" else np.asarray(a, np.float64) for a in (arrays[i] for i in self.smooth)
        )
        if not wide or sum(np.isfinite(a).sum() for a in wide) == 0 or any(a.size > 512 for a in wide):
            return None
        key = b"".join(np.round(a, 11).tobytes() + str(a.shape).encode() for a in wide)
        if key in self.seen:
            return None
        self.seen.add(key)
        entry = Entry(node, wide, size(node) if length is None else length)
        self.entries.append(entry)
        return entry

    def _wide(self, entry: Entry, function: Callable[[Any], Any]) -> list[Array]:
        """Apply a function at the smooth moments; the others are not looked at."""
        found: list[Any] = [entry.arrays[0]] * len(self.bench.moments)
        for i, a in zip(self.smooth, entry.arrays):
            found[i] = np.asarray(function(a))
        return found

    def _build(self, base: Tried) -> None:
        bench, write = self.bench, self.bench.spelling
        self._add(ast.Constant(1), [np.asarray(1.0)] * len(bench.moments), 0)
        for name, arrays in bench.names.items():
            self._add(parsed(name), arrays, 1)
        for node in self._written(base):
            if isinstance(node, ast.Constant):
                value = [np.asarray(node.value)] * len(bench.moments)
                self._add(node, value, 1)
            else:
                self._add(node, bench.arrays(node))
        atoms = [e for e in self.entries if e.arrays[0].dtype.kind in "fc"][:ATOMS]
        for name in list(bench.names):
            sized = bench.names[name]
            for axis in range(sized[0].ndim):
                if write.has("length"):
                    text = write.write("length", e=name, axis=axis)
                    self._add(parsed(text), [np.asarray(float(a.shape[axis])) for a in sized], 2)
            if write.has("count") and sized[0].ndim:
                text = write.write("count", e=name)
                self._add(parsed(text), [np.asarray(float(a.size)) for a in sized], 2)
        lengths = [e for e in self.entries if e.arrays[0].ndim == 0 and e not in atoms]
        for entry in (*atoms, *lengths):
            self._functions(entry)
        for entry in atoms:
            self._reduced(entry.node, entry.arrays, entry.size)
            if entry.arrays[0].ndim >= 2 and write.has("transpose"):
                turned = filled(write.write("transpose", e="E"), e=entry.node)
                self._add(turned, self._wide(entry, lambda a: np.swapaxes(a, -1, -2)), entry.size + 1)
            if write.has("ones") and isinstance(entry.node, ast.Name):
                ones = filled(write.write("ones", e="E"), e=entry.node)
                self._add(ones, self._wide(entry, np.ones_like), entry.size + 1)
        for a, b in self._pairs([e for e in atoms if e.size <= 6][:20]):
            product = [x * y for x, y in zip(a.arrays, b.arrays)]
            self._reduced(binary(a.node, ast.Mult(), b.node), tuple(product), a.size + b.size)
        self._matrices([e for e in self.entries if e.arrays[0].ndim == 2 and e.size <= 4][:14])

    def _written(self, base: Tried) -> Iterator[ast.expr]:
        """List the expressions of the forward and of the gradient."""
        outer = self.bench.region.outer
        written = [] if outer is None else list(own(outer.body))
        for node in (*self.bench.region.expressions(base.tree), *written):
            number = isinstance(node, ast.Constant) and isinstance(node.value, float)
            kinds = (ast.BinOp, ast.Call, ast.UnaryOp, ast.Subscript, ast.Compare)
            if isinstance(node, ast.expr) and (number or isinstance(node, kinds)):
                yield node

    def _functions(self, entry: Entry) -> None:
        write = self.bench.spelling
        sized = entry.arrays[0].ndim == 0 and not isinstance(entry.node, ast.Name)
        for name, function in NUMPY.items():
            if sized and name not in ("sqrt", "rsqrt", "reciprocal"):
                continue
            if not write.has(name) or (entry.arrays[0].dtype.kind == "c" and name not in COMPLEX):
                continue
            if name == "conj" and entry.arrays[0].dtype.kind != "c":
                continue
            try:
                values = self._wide(entry, function)
            except Exception:  # a scalar has no last axis
                continue
            rare = 0 if name in USUAL and entry.size <= 2 else 2 if name in USUAL | {"bell"} else 4
            self._add(filled(write.write(name, e="E"), e=entry.node), values, entry.size + 1 + rare)
        if write.has("digamma") and isinstance(entry.node, ast.Name):
            node = filled(write.write("digamma", e="E"), e=entry.node)
            self._add(node, self.bench.arrays(node), entry.size + 1)

    def _reduced(self, node: ast.expr, arrays: tuple[Array, ...], length: int) -> None:
        """Add the sums and means of an expression."""
        write, rank = self.bench.spelling, arrays[0].ndim
        if any(a.ndim != rank for a in arrays) or not rank:
            return
        axes: list[Any] = [*range(rank)]
        for name, function in (("sum", np.sum), ("mean", np.mean)):
            forms: list[tuple[str, Any, bool]] = [(f"{name}_all", None, False)]
            forms += [(f"{name}_kept", a - rank if a == rank - 1 else a, True) for a in axes]
            forms += [(name, a, False) for a in axes]
            for form, axis, kept in forms:
                if write.has(form):
                    found: list[Any] = [arrays[0]] * len(self.bench.moments)
                    for i, a in zip(self.smooth, arrays):
                        found[i] = np.asarray(function(a, axis=axis, keepdims=kept))
                    new = filled(write.write(form, e="E", axis=axis), e=node)
                    self._add(new, found, length + 1)

    def _matrices(self, entries: list[Entry]) -> None:
        for a in entries:
            for b in entries:
                if all(x.shape[1] == y.shape[0] for x, y in zip(a.arrays, b.arrays)):
                    found: list[Any] = [a.arrays[0]] * len(self.bench.moments)
                    for i, x, y in zip(self.smooth, a.arrays, b.arrays):
                        found[i] = x @ y
                    self._add(binary(a.node, ast.MatMult(), b.node), found, a.size + b.size + 1)

    @staticmethod
    def _pairs(entries: list[Entry]) -> Iterator[tuple[Entry, Entry]]:
        for i, a in enumerate(entries):
            for b in entries[i:]:
                try:
                    for x, y in zip(a.arrays, b.arrays):
                        np.broadcast_shapes(x.shape, y.shape)
                except ValueError:
                    continue
                yield a, b

    # ── looking up ───────────────────────────────────────────────────────────────────────────────────────

    def _table(
        self, shapes: Shapes, real: bool
    ) -> tuple[list[Entry], Array, list[tuple[int, int, bool]], Array]:
        key = (*shapes, (int(real),))
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
            rows.append(np.concatenate(flat))
            kept.append(entry)
        if not rows:
            rows = [np.zeros(sum(int(np.prod(s)) for s in shapes))]
            kept = [Entry(parsed("0"), (), 1)]
        table = np.stack(rows)
        few = np.array([n for n, entry in enumerate(kept) if entry.size][:ROWS], int)
        i, j = (few[part] for part in np.triu_indices(len(few)))
        p, q = (part.reshape(-1) for part in np.meshgrid(few, few, indexing="ij"))
        apart = p != q
        p, q = p[apart], q[apart]
        made = [(int(a), int(b), True) for a, b in zip(i, j)] + [
            (int(a), int(b), False) for a, b in zip(p, q)
        ]
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
            groups.setdefault((tuple(a.shape for a in target), real), []).append(n)
        with np.errstate(all="ignore"):
            for (shapes, real), members in groups.items():
                kept, table, made, pairs = self._table(shapes, real)
                wanted = np.stack([np.concatenate([a.reshape(-1) for a in targets[n]]) for n in members])
                for rows, pick in ((table, self._single(kept)), (pairs, self._double(kept, made))):
                    for n, hits in zip(members, _matches(rows, wanted, tolerance)):
                        found[n] += [hit for row, c in hits if (hit := pick(row, c)) is not None]
        return [sorted(hits, key=lambda h: h.rank)[:most] for hits in found]

    def _single(self, kept: list[Entry]) -> Callable[[int, float], Hit | None]:
        return lambda row, c: _scaled(kept[row].node, c, kept[row].size)

    def _double(
        self, kept: list[Entry], made: list[tuple[int, int, bool]]
    ) -> Callable[[int, float], Hit | None]:
        def pick(row: int, c: float) -> Hit | None:
            i, j, product = made[row]
            a, b = kept[i], kept[j]
            node = binary(a.node, ast.Mult() if product else ast.Div(), b.node)
            return _scaled(node, c, a.size + b.size + 1)

        return pick


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
    norms = (clean**2) @ mask.T.astype(float)
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


def _scaled(node: ast.expr, factor: float, length: int) -> Hit | None:
    """Write an expression times a constant."""
    for nice in NICE:
        if abs(factor - nice) <= 1e-6 * abs(nice):
            odd = 1.5 if abs(nice) not in (1.0, 2.0, 0.5) else 0.0  # a name is better than its value
            bare = 2.0 if odd and isinstance(node, ast.Constant) else 0.0
            return Hit(times(node, nice), length + (nice != 1.0) + odd + bare)
    for value in NAMED:
        for ratio in (1.0, 0.5, 2.0, -1.0, -0.5, -2.0):
            for base in (value, 1 / value):
                if abs(factor - ratio * base) <= 1e-6 * abs(factor):
                    return Hit(times(node, ratio * base), length + 4)
    return None


def times(node: ast.expr, factor: float) -> ast.expr:
    """Write a node times a number as a person would."""
    if isinstance(node, ast.Constant) and node.value == 1 and factor > 0:
        if factor != int(factor) and 1 / factor == round(1 / factor):
            return binary(node, ast.Div(), ast.Constant(round(1 / factor)))
        return ast.Constant(int(factor) if factor == int(factor) else factor)
    if factor == 1:
        return node
    if factor == -1:
        return ast.UnaryOp(ast.USub(), node)
    if factor < 0:
        return ast.UnaryOp(ast.USub(), times(node, -factor))
    if factor == int(factor):
        return binary(ast.Constant(int(factor)), ast.Mult(), node)
    if 1 / factor == round(1 / factor):
        return binary(node, ast.Div(), ast.Constant(round(1 / factor)))
    return binary(ast.Constant(float(repr(factor))), ast.Mult(), node)
