"""Another function that takes the same is meant: one that adds up where one overwrites, the other extreme."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called

WORDS = "another function that takes the same"
RANK = 4.5
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
    """Exchange functions for their siblings."""
    for node in bench.region.expressions(base.tree):
        name = called(node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        for other in SIBLINGS.get(name, ()):
            function = ast.Attribute(node.func.value, other, ast.Load())
            new = ast.Call(function, node.args, node.keywords)
            yield bench.instead(node, new, name, other)
