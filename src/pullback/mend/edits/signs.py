"""A sign, an operator, or the brackets are wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import OPERATORS, Edit

WORDS = "a sign, an operator or brackets"
RANK = 0
EXPLAINS = (
    "sign",
    "inputs-swapped",
    "wrong-operand",
    "constant-factor",
    "missing-factor",
    "missing-term",
    "upstream-additive",
    "upstream-nonlinear",
    "upstream-ignored",
    "wrong-region",
    "nonfinite",
)
SWAPS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Div, ast.MatMult, ast.Add, ast.Sub),
    ast.Div: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.Pow: (ast.Mult,),
}
TURNS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.Gt, ast.LtE, ast.GtE),
    ast.Gt: (ast.Lt, ast.GtE, ast.LtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Eq: (ast.NotEq, ast.GtE, ast.LtE),
    ast.NotEq: (ast.Eq,),
}
SIGNS = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
SUMS, PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div)


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Turn signs, exchange operators and comparisons, regroup."""
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield bench.edit(node, node.operand, f"a minus too many before `{bench.text(node.operand)}`")
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for turn in TURNS.get(type(node.ops[0]), ()):
                turned = ast.Compare(node.left, [turn()], node.comparators)
                yield bench.instead(node, turned, SIGNS[type(node.ops[0])], SIGNS[turn])
        if isinstance(node, ast.BinOp):
            for other in SWAPS.get(type(node.op), ()):
                if other in PRODUCTS and is_one(node.right):
                    continue  # that is a term too many
                old, new = OPERATORS[type(node.op)], OPERATORS[other]
                yield bench.instead(node, ast.BinOp(node.left, other(), node.right), old, new)
            if isinstance(node.op, (ast.Div, ast.Sub)):
                words = f"the two sides of `{OPERATORS[type(node.op)]}` are exchanged"
                yield bench.edit(node, ast.BinOp(node.right, node.op, node.left), words)
            for group in regrouped(node):
                words = f"the brackets are wrong: `{bench.text(node)}` is meant as `{bench.text(group)}`"
                yield bench.edit(node, group, words)
    for node, arrays in bench.expressions(base.tree):
        # Of whole numbers a shift has a sign.
        signed = all(a.dtype.kind in "fc" or (a.dtype.kind == "i" and not a.ndim) for a in arrays)
        if signed and not isinstance(node, ast.UnaryOp):
            minus = ast.UnaryOp(ast.USub(), node)
            yield bench.edit(node, minus, f"a minus is missing before `{bench.text(node)}`")


def is_one(node: ast.expr) -> bool:
    """Tell whether a number one is written."""
    return isinstance(node, ast.Constant) and node.value == 1


def regrouped(node: ast.BinOp) -> Iterator[ast.expr]:
    """Give the other ways to bracket an operation."""
    left, right = node.left, node.right
    if isinstance(left, ast.BinOp):
        a, b, c = left.left, left.right, right
        if isinstance(left.op, PRODUCTS) and isinstance(node.op, (*SUMS, *PRODUCTS)):
            yield ast.BinOp(a, left.op, ast.BinOp(b, node.op, c))
        if isinstance(left.op, SUMS) and isinstance(node.op, PRODUCTS):
            yield ast.BinOp(a, left.op, ast.BinOp(b, node.op, c))
        if isinstance(left.op, PRODUCTS) and isinstance(left.left, ast.BinOp) and isinstance(node.op, SUMS):
            yield ast.BinOp(
                left.left.left, left.left.op, ast.BinOp(ast.BinOp(left.left.right, left.op, b), node.op, c)
            )
    if isinstance(right, ast.BinOp) and isinstance(right.op, (*SUMS, *PRODUCTS)):
        yield ast.BinOp(ast.BinOp(left, node.op, right.left), right.op, right.right)
