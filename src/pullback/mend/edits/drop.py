"""A factor, a term or a function is too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Edit, Tried

WORDS = "a factor, a term or a function too many"
RANK = 1


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Keep one side of an operation, or an argument of a call."""
    for node in bench.region.expressions(base.tree):
        at = bench.where(node)
        if isinstance(node, ast.BinOp):
            kind = {ast.Add: "term", ast.Sub: "term"}.get(type(node.op), "factor")
            yield Edit.of(node, node.left, f"the {kind} `{bench.text(node.right)}` is too many{at}")
            yield Edit.of(node, node.right, f"the {kind} `{bench.text(node.left)}` is too many{at}")
        if isinstance(node, ast.Call):
            function = bench.text(node.func)
            for part in node.args[:3]:
                if not isinstance(part, (ast.Starred, ast.Constant, ast.List, ast.Tuple, ast.Lambda)):
                    words = f"`{function}` around `{bench.text(part)}` is too many{at}"
                    yield Edit.of(node, part, words)
            if isinstance(node.func, ast.Attribute) and bench.valued(node.func.value) is not None:
                words = f"`.{node.func.attr}` of `{bench.text(node.func.value)}` is too many{at}"
                yield Edit.of(node, node.func.value, words)
        if isinstance(node, ast.Attribute) and bench.valued(node.value) is not None:
            yield Edit.of(node, node.value, f"`.{node.attr}` is too many{at}")
        if isinstance(node, ast.Subscript):
            yield Edit.of(node, node.value, f"the index of `{bench.text(node.value)}` is too many{at}")
