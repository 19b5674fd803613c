"""Another function of the same kind is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Edit, Tried
from pullback.mend.edit import called, filled
from pullback.mend.spelling import UNARY

WORDS = "another function"
RANK = 10
# What overwrites, and what adds up.
SIBLINGS = {
    "tensor_scatter_nd_update": ("tensor_scatter_nd_add",),
    "scatter_nd_update": ("scatter_nd_add",),
    "set": ("add",),
    "multiply": ("add", "mul"),
    "scatter_": ("scatter_add_",),
    "scatter": ("scatter_add",),
    "index_copy_": ("index_add_",),
    "index_copy": ("index_add",),
    "segment_mean": ("segment_sum",),
    "segment_sum": ("segment_mean",),
    "unsorted_segment_mean": ("unsorted_segment_sum",),
    "unsorted_segment_sum": ("unsorted_segment_mean",),
    "minimum": ("maximum",),
    "maximum": ("minimum",),
    "argmin": ("argmax",),
    "argmax": ("argmin",),
    "greater": ("less", "greater_equal"),
    "less": ("greater", "less_equal"),
    "ones_like": ("zeros_like",),
    "zeros_like": ("ones_like",),
}


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Exchange functions of one tensor, and siblings."""
    for node in bench.region.expressions(base.tree):
        name = called(node)
        if not isinstance(node, ast.Call) or not name:
            continue
        for other in SIBLINGS.get(name, ()):
            if isinstance(node.func, ast.Attribute):
                function = ast.Attribute(node.func.value, other, ast.Load())
                new = ast.Call(function, node.args, node.keywords)
                words = f"`{name}` stands where `{other}` is meant{bench.where(node)}"
                yield Edit.of(node, new, words)
        one = len(node.args) == 1 and not node.keywords and bench.valued(node.args[0]) is not None
        if one and bench.valued(node) is not None:
            for other in UNARY:
                if other != name and bench.spelling.has(other):
                    new_one = filled(bench.spelling.write(other, e="E"), e=node.args[0])
                    words = f"`{name}` stands where `{other}` is meant{bench.where(node)}"
                    yield Edit.of(node, new_one, words)
    if bench.spelling.has("where"):
        for node, arrays in bench.expressions(base.tree):
            if arrays[0].dtype.kind == "f" and isinstance(node, (ast.Name, ast.Call)):
                for name in UNARY:
                    if bench.spelling.has(name):
                        new_one = filled(bench.spelling.write(name, e="E"), e=node)
                        words = f"`{bench.text(node)}` is meant inside `{name}`{bench.where(node)}"
                        yield Edit.of(node, new_one, words)
