"""A sum or a mean is missing, or runs over other axes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit

WORDS = "a sum or a mean over axes"
RANK = 6
EXPLAINS = (
    "broadcast-not-reduced",
    "constant-factor",
    "missing-factor",
    "missing-term",
    "wrong-region",
    "upstream-replaced",
    "transposed",
)
# A function of a sum and its sibling, by their last words.
SIBLINGS = {"sum": "mean", "mean": "sum", "reduce_sum": "reduce_mean", "reduce_mean": "reduce_sum"}


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Sum or average a part over any axes; exchange sums and means."""
    spelling = bench.spelling
    for node, arrays in bench.expressions(base.tree):
        rank = arrays[0].ndim
        reduced = isinstance(node, ast.Call) and _is_reduction(node)
        if not rank or reduced or arrays[0].dtype.kind not in "fc":
            continue
        axes = [str(a) for a in range(rank)] + (["(0, 1)", "(1, 2)", "(0, 2)"] if rank == 3 else [])
        if rank == 4:
            axes += ["(0, 1, 2)", "(0, 2, 3)", "(0, 1)", "(2, 3)"]
        for name in ("sum", "mean"):
            forms = [(f"{name}_all", "")]
            forms += [(form, axis) for axis in axes for form in (name, f"{name}_kept")]
            for form, axis in forms:
                if spelling.has(form):
                    new = spelling.around(node, form, axis=axis)
                    over = f" over axis {axis}" if axis else ""
                    words = f"`{bench.text(node)}` is not {'summed' if name == 'sum' else 'averaged'}{over}"
                    yield bench.edit(node, new, words)
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.Call) and _is_reduction(node):
            yield from _exchanged(bench, node)
            yield from _otherwise(bench, node)
            if not any(k.arg in ("keepdims", "keepdim") for k in node.keywords):
                name = "keepdim" if bench.spelling.kind == "torch" else "keepdims"
                kept = ast.Call(node.func, node.args, [*node.keywords, ast.keyword(name, ast.Constant(True))])
                yield bench.edit(node, kept, f"`{bench.text(node)}` does not keep its axes")


def _is_reduction(node: ast.Call) -> bool:
    return (isinstance(node.func, ast.Attribute) and node.func.attr in SIBLINGS) or (
        isinstance(node.func, ast.Name) and node.func.id in ("total", "mean", "sum")
    )


def _otherwise(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    """Reduce the same operand over other axes."""
    inner = node.args[0] if node.args else None
    if isinstance(node.func, ast.Attribute) and bench.valued(node.func.value) is not None:
        inner = node.func.value
    arrays = None if inner is None else bench.valued(inner)
    if inner is None or arrays is None:
        return
    for name in ("sum", "mean"):
        for axis in range(arrays[0].ndim):
            for form in (f"{name}_kept", name):
                if bench.spelling.has(form):
                    last = axis if axis < arrays[0].ndim - 1 else -1
                    new = bench.spelling.around(inner, form, axis=last)
                    yield bench.instead(node, new, bench.text(node), bench.text(new))


def _exchanged(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    if not isinstance(node.func, ast.Attribute):
        return
    other = SIBLINGS[node.func.attr]
    new = ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords)
    yield bench.instead(node, new, node.func.attr, other)
