"""The bench: a region at all its moments, where candidates are tried and parts of the code have values.

A candidate is a tree. It is compiled once and run at one moment after the other, and most die at the first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np

from pullback.checker.budget import Budget
from pullback.mend.edit import Edit
from pullback.mend.moment import Moment
from pullback.mend.region import Region
from pullback.mend.saved import Saved
from pullback.mend.spelling import Spelling
from pullback.mend.tree import exchanged
from pullback.mend.watch import Slow, Watch
from pullback.view.subject import Array

# Functions whose kernels may end the process when they are fed what does not fit.
FRAGILE = (
    "scatter", "gather", "segment", "conv", "pool", "sparse", "raw_ops", "top_k", "fft", "solve", "cholesky",
    "svd", "eig", "qr", "image", "resize", "bincount", "unique", "one_hot", "diag", "band_part", "interp",
)  # fmt: skip
LONGEST = 1.0  # CPU seconds that a candidate may take at one moment


@dataclass(frozen=True)
class Tried:
    """Hold a candidate that ran: its tree, the edits, and of each input whether it is right everywhere."""

    tree: ast.Module
    edits: tuple[Edit, ...]
    right: tuple[bool, ...]
    distance: float = np.inf
    fails: bool = False  # at a moment where the rule itself fails: another input may be to blame

    @property
    def is_right(self) -> bool:
        """Tell whether nothing is wrong any more."""
        return all(self.right) and not self.fails


@dataclass
class Bench:
    """Hold the region, the moments, and what was tried."""

    region: Region
    moments: list[Moment]
    spelling: Spelling
    budget: Budget
    watch: Watch
    saved: Saved | None = None  # how a forward of its own hands on what it keeps
    tried: int = 0
    seen: set[str] = field(default_factory=set)
    nearest: list[tuple[float, int, Tried]] = field(default_factory=list)
    kept: dict[int, tuple[ast.expr, list[Array] | None]] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)  # the moments where the rule as it is fails
    memory: dict[Any, Any] = field(default_factory=dict)  # what an edit class asks once

    @property
    def asked(self) -> list[int]:
        """List the inputs that are judged."""
        return [k for k, w in enumerate(self.moments[0].wanted) if w is not None and k not in self.silent]

    @cached_property
    def silent(self) -> set[int]:
        """List the inputs for which the gradient returns None on purpose."""
        code = self.region.compiled(self.region.tree)
        runs = (self.guarded(moment.run, code) for moment in self.moments)
        parts: list[Any] = next((parts for parts in runs if parts is not None), [])
        return {k for k, part in enumerate(parts) if part is None}

    def guarded(self, run: Callable[..., Any], *given: Any, seconds: float = LONGEST) -> Any:
        """Run a candidate's code: it may fail, and it may never return."""
        try:
            with self.watch.allowing(seconds):
                return run(*given)
        except Slow:
            return None
        except Exception:  # a candidate may fail in any way it likes
            return None

    def judge(
        self, tree: ast.Module, edits: tuple[Edit, ...] = (), worst: tuple[bool, ...] = ()
    ) -> Tried | None:
        """Try a tree: give which inputs are right at all moments; None if it fails at one.

        `worst` are the inputs that must be right; what has none beyond them is not looked at any longer.
        """
        self.budget.look()
        asked = self.asked
        right = [True] * len(asked)
        try:
            code = self.region.compiled(tree)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return None
        fails = False
        for n, moment in enumerate(self.moments):
            parts = self.guarded(moment.run, code)
            found = None if parts is None else self.guarded(moment.judged, parts)
            if found is None and edits:
                if n not in self.broken:
                    return None
                fails = True
                continue
            if found is None:
                self.broken.add(n)
            found = found or [False] * len(moment.wanted)  # the rule itself may fail at another shape
            right = [r and bool(found[k]) for r, k in zip(right, asked)]
            if worst and not _gains(right, worst):
                if n == 0 and edits:
                    self.near(tree, edits, moment, parts)
                return None
        return Tried(tree, edits, tuple(right), fails=fails)

    def near(self, tree: ast.Module, edits: tuple[Edit, ...], moment: Moment, parts: list[Any]) -> None:
        """Remember a variant by how far it is from the truth at the first moment."""
        if moment.bounds:
            return
        total = 0.0
        for k in self.asked:
            wanted = moment.wanted[k]
            array = self.guarded(moment.opened.array, parts[k])
            if wanted is None or array is None or array.shape != wanted.shape or not np.isfinite(array).all():
                return
            total += float(np.linalg.norm(array - wanted) / (np.linalg.norm(wanted) + 1e-30))
        self.nearest.append((total, len(self.nearest), Tried(tree, edits, (False,) * len(self.asked), total)))

    def attempt(self, base: Tried, edit: Edit) -> Tried | None:
        """Try one more edit on top of others; None for what was tried before, or fails."""
        tree = exchanged(base.tree, {id(old): new for old, new in edit.changes})
        if tree is base.tree or _undoes(base.edits, edit) or not (edit.ran or self._is_safe(base.tree, edit)):
            return None
        try:
            key = ast.dump(tree)
        except RecursionError:
            return None
        if key in self.seen:
            return None
        self.seen.add(key)
        self.tried += 1
        return self.judge(tree, (*base.edits, edit), base.right)

    def _is_safe(self, tree: ast.Module, edit: Edit) -> bool:
        """Tell whether no kernel that may abort is fed other shapes than it was."""
        inside = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and _is_fragile(node)
            for argument in (*node.args, *node.keywords)
            for part in ast.walk(argument)
        }
        for old, new in edit.changes:
            if id(old) in inside and isinstance(old, ast.expr) and isinstance(new, ast.expr):
                before, after = self._fed(old), self._fed(new)
                if before is None or after is None or not all(map(_fits_alike, before, after)):
                    return False
            calls = (n for n in ast.walk(new) if isinstance(n, ast.Call))
            kept = {id(n) for n in ast.walk(old)}
            if any(id(n) not in kept and self._is_fed_otherwise(n, old) for n in calls):
                return False
        return True

    def _fed(self, node: ast.expr) -> list[Array] | None:
        """Give the arrays of what a call is handed; of a shape, its numbers."""
        values = self.evaluated(node)
        if values is None:
            return None
        return self.as_arrays([np.asarray(v) if isinstance(v, (list, tuple)) else v for v in values])

    @staticmethod
    def _is_fed_otherwise(call: ast.Call, old: ast.AST) -> bool:
        """Tell whether a new call of a fragile function has other arguments than the old one."""
        if not _is_fragile(call):
            return False
        return not isinstance(old, ast.Call) or any(a is not b for a, b in zip(call.args, old.args))

    def learn(self, moment: Moment) -> None:
        """Add a moment; what has values gets one more."""
        self.moments.append(moment)
        self.kept.clear()
        self.memory.clear()
        for name in ("spaces", "names", "upstream"):
            vars(self).pop(name, None)

    # ── values of the code ───────────────────────────────────────────────────────────────────────────────

    @cached_property
    def spaces(self) -> list[dict[str, Any]]:
        """Give the names at the end of the gradient, at every moment."""
        code = self.region.compiled(self.region.tree, telling=True)
        found = []
        for moment in self.moments:
            told = self.guarded(moment.left, code)
            found.append({**moment.space, **(told or {})})
        return found

    def evaluated(self, node: ast.expr | str) -> list[Any] | None:
        """Give the value of an expression at every moment; None where it has none."""
        try:
            if isinstance(node, str):
                code = compile(node, "<a candidate>", "eval", dont_inherit=True)
            else:
                code = compile(ast.fix_missing_locations(ast.Expression(node)), "<a candidate>", "eval")
        except (SyntaxError, ValueError, TypeError):
            return None
        values = []
        for moment, space in zip(self.moments, self.spaces):
            value = self.guarded(_value, moment, code, space)
            if value is None:
                return None
            values.append(value[0])
        return values

    def arrays(self, node: ast.expr | str) -> list[Array] | None:
        """Give the value of an expression as arrays, if it is a tensor or a number."""
        values = self.evaluated(node)
        return None if values is None else self.as_arrays(values)

    def as_arrays(self, values: Sequence[Any]) -> list[Array] | None:
        """Make arrays of values, if they are tensors or numbers."""
        found = []
        for moment, value in zip(self.moments, values):
            if not self.spelling.is_tensor(value):
                return None
            array = self.guarded(moment.opened.array if hasattr(value, "dtype") else np.asarray, value)
            if array is None or array.dtype.kind not in "fciub" or array.size > 4096:
                return None
            found.append(array)
        return found

    def valued(self, node: ast.expr) -> list[Array] | None:
        """Give the arrays of an expression of the region, if it has any; asked once."""
        if isinstance(node, (ast.Constant, ast.Tuple, ast.List, ast.Dict)):
            return None
        if id(node) not in self.kept:
            self.kept[id(node)] = (node, self.arrays(node))
        return self.kept[id(node)][1]

    def expressions(self, tree: ast.Module) -> list[tuple[ast.expr, list[Array]]]:
        """List the expressions of a variant that are tensors, with their arrays."""
        pairs = ((node, self.valued(node)) for node in self.region.expressions(tree))
        return [(node, arrays) for node, arrays in pairs if arrays is not None]

    @cached_property
    def names(self) -> dict[str, list[Array]]:
        """Give the arrays of every name in reach that the forward or the gradient made."""
        found: dict[str, list[Array]] = {}
        first = self.moments[0]
        told = [name for name in self.spaces[0] if name.isidentifier()]
        read = {n.id for part in (self.region.outer, self.region.grad) if part for n in ast.walk(part)
                if isinstance(n, ast.Name)}  # fmt: skip
        mine = [n for n in told if n in first.names or n not in first.space or n in self.given or n in read]
        # What the gradient is handed may hold more: `ctx.scale`.
        handed = [(n, self.spaces[0].get(n)) for n in self.given]
        held = [f"{n}.{a}" for n, v in handed if type(v).__name__ == "Context" for a in sorted(vars(v))]
        held += [text for text in self._dotted() if text not in held]
        kept = [n for n in mine if n not in first.unsaved]
        for name in (*kept, *held, *(n for n in mine if n in first.unsaved)):  # what is kept comes first
            values = self.evaluated(name) if "." in name else [space.get(name) for space in self.spaces]
            arrays = None if values is None else self.as_arrays(values)
            if arrays is not None and not (name in first.unsaved and _is_among(arrays, found.values())):
                found[name] = arrays
        return found

    def _dotted(self) -> list[str]:
        """List what the forward and the gradient read of objects in reach: `self.scale`."""
        parts = [n for part in (self.region.outer, self.region.grad) if part for n in ast.walk(part)]
        reads = [n for n in parts if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)]
        roots = {ast.unparse(n): n.value.id for n in reads if isinstance(n.value, ast.Name)}
        space, known = self.spaces[0], self.moments[0].names
        return [t for t, r in roots.items() if r in known and not self.spelling.is_tensor(space.get(r))]

    @cached_property
    def given(self) -> list[str]:
        """Name what the gradient is handed."""
        return self.region.parameters()

    @cached_property
    def upstream(self) -> list[str]:
        """Name the cotangents that the gradient is handed."""
        handed = {id(value) for value in self.moments[0].opened.given}
        return [n for n in self.given if n in self.names and id(self.spaces[0].get(n)) in handed]

    def edit(
        self,
        old: ast.AST,
        new: ast.AST,
        words: str,
        explains: tuple[str, ...] | None = None,
        at: ast.AST | None = None,
    ) -> Edit:
        """Change one place; the words are followed by its line, or that of another node."""
        return Edit(((old, new),), words + self.where(at or old), explains)

    def instead(self, old: ast.AST, new: ast.AST, this: str, that: str) -> Edit:
        """Change one place, where one thing stands and another is meant."""
        return self.edit(old, new, f"`{this}` stands where `{that}` is meant")

    def where(self, node: ast.AST) -> str:
        """Say on which line a node stands."""
        line = getattr(node, "lineno", None)
        return f" (line {line})" if line else ""

    def text(self, node: ast.AST) -> str:
        """Give the text of a node, shortened in its middle: what is put around it stands at its ends."""
        text = " ".join(ast.unparse(node).split())
        return text if len(text) <= 60 else f"{text[:29]}…{text[-30:]}"


def _undoes(before: Sequence[Edit], edit: Edit) -> bool:
    """Tell whether an edit takes an earlier one away, which then says nothing."""
    new = {id(node) for earlier in before for _, node in earlier.changes}
    gone = {id(part) for old, _ in edit.changes for part in ast.walk(old)} & new if new else set()
    return bool(gone - {id(part) for _, kept in edit.changes for part in ast.walk(kept)})


def _is_among(arrays: list[Array], known: Iterable[list[Array]]) -> bool:
    return any(all(np.array_equal(a, b) for a, b in zip(arrays, other)) for other in known)


def _fits_alike(a: Array, b: Array) -> bool:
    integers = a.dtype.kind in "iu" and b.dtype.kind in "iu"  # a number and a size have other widths
    return a.shape == b.shape and (integers or a.dtype == b.dtype)


def _is_fragile(call: ast.Call) -> bool:
    return any(word.startswith(FRAGILE) for word in re.split(r"[._]", ast.unparse(call.func)))


def _gains(right: list[bool], before: tuple[bool, ...]) -> bool:
    """Tell whether nothing was lost, and something was won if there was anything to win."""
    lost = any(b and not r for r, b in zip(right, before))
    return not lost and (all(before) or any(r and not b for r, b in zip(right, before)))


def _value(moment: Moment, code: CodeType, space: dict[str, Any]) -> tuple[Any]:
    return (moment.opened.call(lambda *given: eval(code, dict(space))),)
