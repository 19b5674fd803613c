"""The cotangent does not go through an operation of the forward, or not backwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called, filled
from pullback.mend.region import own
from pullback.mend.tree import exchanged

WORDS = "an operation of the forward, applied to a part"
RANK = 7.5
EXPLAINS = (
    "transposed",
    "permuted",
    "missing-factor",
    "missing-term",
    "wrong-region",
)
# What turns an operation round, by its last word.
BACKWARDS = {"cumsum": "reverse", "cumulative_sum": "reverse"}


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Apply each operation of the forward that takes one tensor and keeps its shape to a part."""
    yield from _from_the_end(bench, base)
    operations = list(_operations(bench))
    for node, arrays in bench.expressions(base.tree):
        if arrays[0].dtype.kind not in "fc" or not arrays[0].ndim:
            continue
        for call, at in operations:
            given = [node if i == at else part for i, part in enumerate(call.args)]
            turned = BACKWARDS.get(called(call))
            keywords = [k for k in call.keywords if k.arg != turned]
            if turned is not None and len(keywords) == len(call.keywords):
                keywords.append(ast.keyword(turned, ast.Constant(True)))
            said = f"`{bench.text(node)}` does not go through `{bench.text(call.func)}`"
            yield bench.edit(node, ast.Call(call.func, given, keywords), said)


def _from_the_end(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Cumulate from the other end, where the framework has no flag for it."""
    spelling = bench.spelling
    for node, arrays in bench.expressions(base.tree):
        inner = _cumulated(bench, node)
        if inner is None or not spelling.has("reverse") or spelling.kind == "tensorflow":
            continue
        for axis in range(arrays[0].ndim):
            turned = spelling.around(inner, "reverse", axis=axis)
            back = filled(spelling.write("reverse", e="E", axis=axis), e=exchanged(node, {id(inner): turned}))
            yield bench.edit(node, back, f"`{bench.text(node)}` is meant from the other end")


def _cumulated(bench: Bench, node: ast.expr) -> ast.expr | None:
    """Give what a call cumulates."""
    if not isinstance(node, ast.Call) or called(node) not in BACKWARDS:
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if owner is not None and bench.valued(owner) is not None:
        return owner
    return node.args[0] if node.args and bench.valued(node.args[0]) is not None else None


def _operations(bench: Bench) -> Iterator[tuple[ast.Call, int]]:
    """List the calls of the forward with one tensor among their arguments, and where it stands."""
    outer = bench.region.outer
    seen = set()
    for node in own(outer.body) if outer is not None else ():
        if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        result = bench.arrays(node)
        inside = [(i, bench.arrays(a)) for i, a in enumerate(node.args) if not isinstance(a, ast.Constant)]
        tensors = [(i, a) for i, a in inside if a is not None and a[0].ndim]
        if result is None or len(tensors) != 1 or result[0].shape != tensors[0][1][0].shape:
            continue
        if ast.dump(node.func) not in seen:
            seen.add(ast.dump(node.func))
            yield node, tensors[0][0]
