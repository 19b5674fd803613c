"""A number, an index or a flag is off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called
from pullback.mend.tree import exchanged

WORDS = "a number, an index or a flag"
RANK = 4
FLAGS = {
    "cumsum": ("reverse", "exclusive"),
    "cumprod": ("reverse",),
    "cumlogsumexp": ("reverse",),
    "cumulative_logsumexp": ("reverse",),
    "scan": ("reverse",),
    "associative_scan": ("reverse",),
    "matvec": ("transpose_a", "adjoint_a"),
    "matmul": ("transpose_a", "transpose_b"),
    "triangular_solve": ("adjoint",),
    "solve": ("adjoint",),
}


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Move numbers by one, double and halve them, turn signs and flags."""
    for node in ast.walk(base.tree):
        if not isinstance(node, ast.Constant):
            continue
        for value in others(node.value):
            new: ast.expr = ast.Constant(value)
            if not isinstance(value, bool) and value < 0:
                new = ast.UnaryOp(ast.USub(), ast.Constant(-value))
            yield bench.instead(node, new, repr(node.value), repr(value))
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.Call):
            yield from _flags(bench, node)
        if isinstance(node, ast.Subscript):
            for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                if isinstance(part, ast.Slice):
                    yield from _slices(bench, node, part)


def others(value: object) -> list[bool | int | float]:
    """List the numbers that one may be mistaken for."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value, 2 * value, value + 2] if value else [1, -1, 2]
    if isinstance(value, float):
        return [2 * value, value / 2, value + 1, value - 1, -value, 1 / value if value else 1.0]
    return []


def _flags(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    """Set what a function does not do unless it is told to."""
    known, name = {k.arg for k in node.keywords}, called(node)
    for flag in FLAGS.get(name, ()):
        if flag not in known:
            new = ast.Call(node.func, node.args, [*node.keywords, ast.keyword(flag, ast.Constant(True))])
            yield bench.edit(node, new, f"`{name}` is meant with `{flag}=True`")


def _slices(bench: Bench, node: ast.Subscript, old: ast.Slice) -> Iterator[Edit]:
    def text(part: ast.expr | None) -> str:
        return "" if part is None else ast.unparse(part)

    low, high = text(old.lower), text(old.upper)
    numbers = {low, high} - {""}
    seen = {f"{low}:{high}"}
    lows = {low, "", "1", "2", "3", *(n[1:] for n in numbers if n.startswith("-"))}
    highs = {high, "", "-1", "-2", "-3", *(f"-{n}" for n in numbers if n.isdigit())}
    for a in sorted(lows):
        for b in sorted(highs):
            if f"{a}:{b}" in seen:
                continue
            seen.add(f"{a}:{b}")
            new = ast.parse(f"x[{a}:{b}]", mode="eval").body
            assert isinstance(new, ast.Subscript)
            changed = exchanged(node, {id(old): new.slice})
            yield bench.edit(node, changed, f"the slice `[{low}:{high}]` stands where `[{a}:{b}]` is meant")
