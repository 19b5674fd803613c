"""A function inside of the gradient is wrong: a rule of its own, a `gradgrad`, or the step of a loop.

What such a function is handed is known to nobody: its edits are made by their form alone, and judged by what
the gradient returns, or where that is right by the second order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import OPERATORS, Edit
from pullback.mend.edits.numbers import others
from pullback.mend.edits.signs import SWAPS, regrouped
from pullback.mend.region import SCOPES, numbers, statements

WORDS = "a sign, a factor, a term, a name or a number of a function inside"
RANK = 8.7  # few edits, where there is such a function at all
KEEPS = True  # may leave the first order as it is, and change the second
MOST = 6  # names that are tried in the place of one


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Change what functions inside compute."""
    forward = bench.region.outer if bench.saved is None else bench.saved.forward
    known = [] if base.is_right or forward is None else numbers(forward)
    functions = [n for s in statements(base.tree) for n in ast.walk(s) if isinstance(n, SCOPES[:3])]
    seen: set[int] = set()
    for function in sorted(functions, key=lambda f: len([*ast.walk(f)])):  # the innermost first
        names = _names(bench, function)
        for result in _results(function):
            for node in ast.walk(result):
                if isinstance(node, ast.expr) and id(node) not in seen:
                    seen.add(id(node))
                    yield from _changed(bench, node, names)
            for part in result.elts if isinstance(result, ast.Tuple) else [result]:
                for term in _terms(part):
                    yield from _scaled(bench, term, names, known)


def _results(function: ast.AST) -> Iterator[ast.expr]:
    """List what a function computes: what it returns, and what it gives names to."""
    if isinstance(function, ast.Lambda):
        yield function.body
        return
    for node in ast.walk(function):
        if isinstance(node, (ast.Return, ast.Assign)) and node.value is not None:
            yield node.value


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """List a result, and what it is the sum of."""
    yield node
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _terms(node.left)
        yield from _terms(node.right)


def _names(bench: Bench, function: ast.AST) -> list[str]:
    given = [n.arg for n in ast.walk(function) if isinstance(n, ast.arg)]
    made = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys((*given, *made, *bench.names)))[:MOST]


def _changed(bench: Bench, node: ast.expr, names: list[str]) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield bench.edit(node, node.operand, f"a minus too many before `{bench.text(node.operand)}`")
    if isinstance(node, ast.BinOp):
        for other in SWAPS.get(type(node.op), ()):
            yield bench.instead(
                node, ast.BinOp(node.left, other(), node.right), OPERATORS[type(node.op)], OPERATORS[other]
            )
        yield bench.edit(node, node.left, f"`{bench.text(node.right)}` is too many")
        yield bench.edit(node, node.right, f"`{bench.text(node.left)}` is too many")
        for group in regrouped(node):
            words = f"the brackets are wrong: `{bench.text(node)}` is meant as `{bench.text(group)}`"
            yield bench.edit(node, group, words)
    if isinstance(node, ast.Constant):
        for value in others(node.value):
            if isinstance(value, bool) or value >= 0:
                yield bench.instead(node, ast.Constant(value), repr(node.value), repr(value))
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        for name in names:
            if name != node.id:
                yield bench.instead(node, ast.Name(name, ast.Load()), node.id, name)


def _scaled(bench: Bench, node: ast.expr, names: list[str], known: list[float]) -> Iterator[Edit]:
    """Multiply a result by what may be missing."""
    said = bench.text(node)
    if isinstance(node, (ast.Tuple, ast.Lambda, ast.Constant)):
        return
    yield bench.edit(node, ast.UnaryOp(ast.USub(), node), f"a minus is missing before `{said}`")
    factors = (ast.Constant(number) for number in (2, *known))
    for factor in (*factors, *(ast.Name(name, ast.Load()) for name in names)):
        words = f"the factor `{bench.text(factor)}` is missing"
        yield bench.edit(node, ast.BinOp(node, ast.Mult(), factor), words)
    yield bench.edit(node, ast.BinOp(node, ast.Div(), ast.Constant(2)), f"`{said}` is not divided by `2`")
