"""A factor, a term or a function is too many."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit

WORDS = "a factor, a term or a function too many"
RANK = 1
KEEPS = True  # may leave the first order as it is, and change the second


def everywhere(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Take a function of one argument away wherever it is called."""
    calls: dict[str, list[ast.Call]] = {}
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            calls.setdefault(bench.text(node.func), []).append(node)
    for function, nodes in calls.items():
        inside = {id(n) for node in nodes for n in ast.walk(node.args[0])}
        if len(nodes) > 1 and not any(id(node) in inside for node in nodes):
            changes = tuple((node, node.args[0]) for node in nodes)
            yield Edit(changes, f"`{function}` is too many, in {len(nodes)} places{bench.where(nodes[0])}")


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Keep one side of an operation, or an argument of a call."""
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.BinOp):
            kind = {ast.Add: "term", ast.Sub: "term"}.get(type(node.op), "factor")
            yield bench.edit(node, node.left, f"the {kind} `{bench.text(node.right)}` is too many")
            yield bench.edit(node, node.right, f"the {kind} `{bench.text(node.left)}` is too many")
        if isinstance(node, ast.Call):
            function = bench.text(node.func)
            for part in node.args[:3]:
                if not isinstance(part, (ast.Starred, ast.Constant, ast.List, ast.Tuple, ast.Lambda)):
                    yield bench.edit(node, part, f"`{function}` around `{bench.text(part)}` is too many")
            if isinstance(node.func, ast.Attribute) and bench.valued(node.func.value) is not None:
                words = f"`.{node.func.attr}` of `{bench.text(node.func.value)}` is too many"
                yield bench.edit(node, node.func.value, words)
        if isinstance(node, ast.IfExp):
            for arm in (node.body, node.orelse):
                yield bench.edit(node, arm, f"the choice on `{bench.text(node.test)}` is too many")
        if isinstance(node, ast.Attribute) and bench.valued(node.value) is not None:
            yield bench.edit(node, node.value, f"`.{node.attr}` is too many")
        if isinstance(node, ast.Subscript):
            yield bench.edit(node, node.value, f"the index of `{bench.text(node.value)}` is too many")
    yield from everywhere(bench, base)
