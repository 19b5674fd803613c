"""Another function of one tensor is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called
from pullback.mend.spelling import UNARY

WORDS = "another function of one tensor"
RANK = 10


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Exchange functions of one tensor, and put parts into them."""
    for node in bench.region.expressions(base.tree):
        name = called(node)
        if not isinstance(node, ast.Call) or not name:
            continue
        one = len(node.args) == 1 and not node.keywords and bench.valued(node.args[0]) is not None
        if one and bench.valued(node) is not None:
            for other in UNARY:
                if other != name and bench.spelling.has(other):
                    new_one = bench.spelling.around(node.args[0], other)
                    yield bench.instead(node, new_one, name, other)
    if bench.spelling.has("where"):
        for node, arrays in bench.expressions(base.tree):
            if arrays[0].dtype.kind == "f" and isinstance(node, (ast.Name, ast.Call)):
                for name in UNARY:
                    if bench.spelling.has(name):
                        new_one = bench.spelling.around(node, name)
                        yield bench.edit(node, new_one, f"`{bench.text(node)}` is meant inside `{name}`")
