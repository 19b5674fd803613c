"""An axis or an argument is in the place of another: transposes, exchanged operands, directions."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit

WORDS = "a transpose, or exchanged operands"
RANK = 7
EXPLAINS = (
    "transposed",
    "upstream-replaced",
    "permuted",
    "inputs-swapped",
    "wrong-operand",
    "broadcast-not-reduced",
    "wrong-region",
)


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Transpose or turn round a part; exchange operands and arguments; permute lists of axes."""
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            words = "the operands of `@` are exchanged"
            yield bench.edit(node, ast.BinOp(node.right, node.op, node.left), words)
        if isinstance(node, ast.Call):
            yield from _arguments(bench, node)
        if isinstance(node, (ast.Tuple, ast.List)) and 2 <= len(node.elts) <= 4:
            for order in itertools.permutations(node.elts):
                if list(order) != node.elts:
                    other = type(node)(list(order), ast.Load())
                    yield bench.instead(node, other, bench.text(node), bench.text(other))
    for node, arrays in bench.expressions(base.tree):
        rank = arrays[0].ndim
        if rank >= 2 and bench.spelling.has("transpose"):
            new = bench.spelling.around(node, "transpose")
            yield bench.edit(node, new, f"`{bench.text(node)}` is not transposed")
        if rank >= 1 and bench.spelling.has("reverse"):
            for axis in range(rank):
                new = bench.spelling.around(node, "reverse", axis=axis)
                yield bench.edit(node, new, f"`{bench.text(node)}` is not reversed along axis {axis}")
        if rank == 1 and arrays[0].dtype.kind in "iu" and bench.spelling.has("argsort"):
            new = bench.spelling.around(node, "argsort")
            yield bench.edit(node, new, f"`{bench.text(node)}` is not inverted")


def _arguments(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    for i, j in itertools.combinations(range(min(len(node.args), 3)), 2):
        args = list(node.args)
        args[i], args[j] = args[j], args[i]
        words = f"`{bench.text(args[j])}` and `{bench.text(args[i])}` are exchanged"
        yield bench.edit(node, ast.Call(node.func, args, node.keywords), words)
