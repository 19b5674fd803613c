"""The bank: expressions in the program's own words, with their values at all moments, found by value.

Built of the names in reach and of every part of the forward and of the gradient: functions of one tensor,
sums and means over axes, then products and quotients of any two. A value is looked up among thousands of them
by one matrix product, up to a constant factor.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import filled, parsed
from pullback.mend.edits.branches import conditions
from pullback.mend.lookup import Entry, Lookup
from pullback.mend.region import numbers, own
from pullback.mend.tree import size
from pullback.view.subject import Array

ATOMS, MATRICES = 40, 40
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
        "normal": lambda x: np.exp(-x * x / 2),
    }  # fmt: skip
USUAL = {"exp", "log", "square", "sqrt", "abs", "sign", "reciprocal", "sin", "cos", "tanh", "sigmoid", "conj"}
COMPLEX = {"exp", "log", "sin", "cos", "tanh", "sqrt", "square", "reciprocal", "conj"}


class Bank:
    """Hold the expressions for a variant of a region."""

    def __init__(self, bench: Bench, base: Tried) -> None:
        self.bench = bench
        self.seen: set[bytes] = set()
        self.means: list[Entry] = []  # what keeps its axes, and can be taken off
        self.smooth = [i for i, moment in enumerate(bench.moments) if not moment.bounds]
        self.entries: list[Entry] = []
        found = Lookup(self.entries, twins(bench, self.smooth))
        self.moves, self.lookup = found.moves, found.lookup
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
        return self._spread([function(a) for a in entry.arrays])

    def _build(self, base: Tried) -> None:
        bench = self.bench
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
        self._lengths()
        lengths = [e for e in self.entries if e.arrays[0].ndim == 0 and e not in atoms]
        for entry in (*atoms, *lengths):
            self._functions(entry)
        masks = [*self._combined(), *self._masks(base)]
        turned = [made for entry in atoms for made in self._shapes(entry)]
        self._products([e for e in atoms if e.size <= 6][:20], masks)
        flat = [e for e in self.entries if e.arrays[0].ndim == 2 and e.size <= 4]
        simple = [e for e in flat if isinstance(e.node, ast.Name) or e in turned]
        self._matrices([*simple, *(e for e in flat if e not in simple)][:14])

    def _lengths(self) -> None:
        """Add the lengths of the axes of every name, and how many elements it has."""
        bench, write = self.bench, self.bench.spelling
        # Of a vector both are one number: what reduces all of it to one counts all of it.
        scalar = all(not bench.names[name][0].ndim for name in bench.upstream)
        for name, sized in list(bench.names.items()):
            forms = [("length", axis) for axis in range(sized[0].ndim)]
            counts = [("count", -1)] if sized[0].ndim else []
            for form, axis in counts + forms if scalar else forms + counts:
                if write.has(form):
                    numbers = [a.size if axis < 0 else a.shape[axis] for a in sized]
                    node = parsed(write.write(form, e=name, axis=axis))
                    self._add(node, [np.asarray(float(n)) for n in numbers], 2)

    def _shapes(self, entry: Entry) -> list[Entry]:
        """Add sums, means and the transpose of an entry, and constants of its shape; give a name turned."""
        write = self.bench.spelling
        turned: list[Entry] = []
        self._reduced(entry.node, entry.arrays, entry.size)
        if entry.arrays[0].ndim >= 2 and write.has("transpose"):
            new = write.around(entry.node, "transpose")
            made = self._add(new, self._wide(entry, lambda a: np.swapaxes(a, -1, -2)), entry.size + 1)
            turned += [made] if made is not None and entry.size == 1 else []
        if write.has("eye") and isinstance(entry.node, ast.Name) and entry.arrays[0].ndim == 2:
            eye = write.around(entry.node, "eye")
            self._add(eye, self._wide(entry, lambda a: np.eye(*a.shape)), entry.size + 1)
        if write.has("ones") and isinstance(entry.node, ast.Name):
            ones = write.around(entry.node, "ones")
            self._add(ones, self._wide(entry, np.ones_like), entry.size + 1)
        return turned

    def _products(self, few: list[Entry], masks: list[Entry]) -> None:
        """Add sums and means of products, and what is handed over less a mean."""
        upstream = self.bench.upstream
        handed = [e for e in few if isinstance(e.node, ast.Name) and e.node.id in upstream]
        pairs = [*self._pairs(few), *((d, m) for d in handed for m in masks if _fit(d, m))]
        for a, b in pairs:
            product = [x * y for x, y in zip(a.arrays, b.arrays)]
            self._reduced(ast.BinOp(a.node, ast.Mult(), b.node), tuple(product), a.size + b.size)
        for d in handed:
            for mean in [e for e in self.means if self.moves(e.arrays) and _fit(d, e)][:40]:
                values = [x - y for x, y in zip(d.arrays, mean.arrays)]
                self._add(ast.BinOp(d.node, ast.Sub(), mean.node), self._spread(values), mean.size + 2)

    def _written(self, base: Tried) -> Iterator[ast.expr]:
        """List the expressions of the forward and of the gradient."""
        outer = self.bench.region.outer
        written = [] if outer is None else list(own(outer.body))
        for node in (*self.bench.region.expressions(base.tree), *written):
            number = isinstance(node, ast.Constant) and isinstance(node.value, float)
            kinds = (ast.BinOp, ast.Call, ast.UnaryOp, ast.Subscript, ast.Compare)
            if isinstance(node, ast.expr) and (number or isinstance(node, kinds)):
                yield node
        if outer is None and self.bench.saved is not None:  # what names mean there is not known here
            yield from map(ast.Constant, numbers(self.bench.saved.forward))

    def _functions(self, entry: Entry) -> None:
        write = self.bench.spelling
        sized = entry.arrays[0].ndim == 0 and not isinstance(entry.node, ast.Name)
        linear = self.moves(entry.arrays)  # in the cotangent, and must stay so
        for name, function in NUMPY.items():
            if linear and name != "conj":
                continue
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
            rare = 0 if name in USUAL and entry.size <= 2 else 2 if name in USUAL | {"bell", "normal"} else 4
            self._add(write.around(entry.node, name), values, entry.size + 1 + rare)
        if write.has("digamma") and isinstance(entry.node, ast.Name) and not linear:
            node = write.around(entry.node, "digamma")
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
                    values = self._spread([function(a, axis=axis, keepdims=kept) for a in arrays])
                    new = write.around(node, form, axis=axis)
                    made = self._add(new, values, length + 1)
                    if kept and made is not None:
                        self.means.append(made)

    def _combined(self) -> list[Entry]:
        """Add functions of two names: of their difference, their quotient, and where they are equal."""
        bench, write = self.bench, self.bench.spelling
        names = {n: a for n, a in bench.names.items() if n not in bench.upstream and "." not in n}
        known = [Entry(parsed(n), self._chosen(a), 1) for n, a in names.items() if a[0].dtype.kind == "f"][:4]
        longer = {e.arrays[0].ndim - 1 for e in known}
        known += [
            Entry(filled("E[..., None]", e=e.node), tuple(a[..., None] for a in e.arrays), 2)
            for e in known
            if e.arrays[0].ndim in longer and e.arrays[0].ndim
        ]
        equal = []
        for a, b in self._pairs(known):
            if a is b:
                continue
            for operator, function in ((ast.Sub(), np.subtract), (ast.Div(), np.divide)):
                values = [function(x, y) for x, y in zip(a.arrays, b.arrays)]
                made = self._add(ast.BinOp(a.node, operator, b.node), self._spread(values))
                if made is not None:
                    self._functions(made)
            same = [np.asarray(x == y, float) for x, y in zip(a.arrays, b.arrays)]
            if write.has("equal") and any(m.any() and m.size > m.sum() for m in same):
                node = filled(write.write("equal", a="A", b="B"), a=a.node, b=b.node)
                pairs = zip(a.arrays[0].shape[::-1], b.arrays[0].shape[::-1])
                shared = [
                    -1 - n for n, (long, short) in enumerate(pairs) if 1 in (long, short) and long != short
                ]
                if shared and write.has("sum_kept"):  # one of them is an extreme: what ties for it shares
                    total = write.write("sum_kept", e="E", axis=shared[0])
                    node = filled(f"E / {total}", e=node)
                    same = [m / m.sum(shared[0], keepdims=True) for m in same]
                equal += [e for e in [self._add(node, self._spread(same), 3)] if e is not None]
        return equal

    def _masks(self, base: Tried) -> list[Entry]:
        """Add the conditions as numbers."""
        write, found = self.bench.spelling, []
        for node in conditions(self.bench, base) if write.has("number") else ():
            arrays = self.bench.arrays(node)
            like = next((n for n, a in self.bench.names.items() if a[0].dtype.kind == "f"), None)
            if arrays is not None and like is not None and arrays[0].ndim:
                new = filled(write.write("number", e="E", x=like), e=node)
                found.append(self._add(new, [a.astype(float) for a in arrays], size(node) + 2))
        return [entry for entry in found if entry is not None]

    def _chosen(self, arrays: list[Array]) -> tuple[Array, ...]:
        return tuple(np.asarray(arrays[i], np.float64) for i in self.smooth)

    def _spread(self, values: list[Any]) -> list[Array]:
        """Lay values of the smooth moments along all of them."""
        found: list[Any] = [values[0]] * len(self.bench.moments)
        for i, value in zip(self.smooth, values):
            found[i] = np.asarray(value)
        return found

    def _matrices(self, entries: list[Entry]) -> None:
        """Add products of two matrices, and of three."""
        left = entries
        for _ in range(2):
            made = []
            for a, b in itertools.product(left, entries):
                if all(x.shape[1] == y.shape[0] for x, y in zip(a.arrays, b.arrays)):
                    values = self._spread([x @ y for x, y in zip(a.arrays, b.arrays)])
                    made.append(
                        self._add(ast.BinOp(a.node, ast.MatMult(), b.node), values, a.size + b.size + 1)
                    )
            left = sorted((e for e in made if e is not None), key=lambda e: e.size)[:MATRICES]

    @staticmethod
    def _pairs(entries: list[Entry]) -> Iterator[tuple[Entry, Entry]]:
        for i, a in enumerate(entries):
            for b in entries[i:]:
                if _fit(a, b):
                    yield a, b


def _fit(a: Entry, b: Entry) -> bool:
    """Tell whether two entries can be multiplied at every moment."""
    try:
        for x, y in zip(a.arrays, b.arrays):
            np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return True


def twins(bench: Bench, smooth: list[int]) -> tuple[int, int] | None:
    """Find two moments at one point: what differs between them depends on the cotangent."""
    for i, a in enumerate(smooth):
        for j, b in enumerate(smooth[:i]):
            here, there = bench.moments[a].inputs, bench.moments[b].inputs
            if all(x.shape == y.shape and np.array_equal(x, y) for x, y in zip(here, there)):
                return j, i
    return None
