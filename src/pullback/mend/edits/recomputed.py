"""What a forward keeps is a constant to a second derivative; computed anew from the inputs it is not.

PyTorch keeps the history of inputs and outputs, and of nothing between them: the first order is right, and
the second, silently, is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit
from pullback.mend.region import own, statements
from pullback.mend.saved import Saved
from pullback.mend.tree import exchanged, inserted, size

WORDS = "what the forward keeps, computed anew"
RANK = 0.5
EXPLAINS = ("residual-constant",)
KEEPS = True  # leaves the first order as it is, and changes the second
LONGEST = 60  # nodes of an expression that is written again


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Let the backward compute what it reads, with the forward's own expressions: all of it, or one alone."""
    saved, last = bench.saved, base.tree.body[-1]
    if saved is None or not saved.context or not base.is_right or not isinstance(last, ast.FunctionDef):
        return
    kept = {name: node for name, node in _kept(saved, base).items() if size(node) <= LONGEST}
    for some in (kept, *({name: kept[name]} for name in kept if len(kept) > 1)):
        yield from _anew(bench, last, some)


def _anew(bench: Bench, last: ast.FunctionDef, kept: Mapping[str, ast.expr]) -> Iterator[Edit]:
    made: ast.FunctionDef = last
    names: list[str] = []
    first: ast.stmt = last
    for at in reversed(range(len(last.body))):
        here = {ast.unparse(n) for n in own([last.body[at]]) if _is_read(n)}
        earlier = {ast.unparse(n) for n in own(last.body[:at]) if _is_read(n)}
        for name in sorted((here - earlier) & kept.keys(), reverse=True):
            statement = ast.Assign([ast.Name(name, ast.Store())], kept[name])
            made = inserted(made, at, ast.copy_location(statement, last.body[at]))
            names, first = [name, *names], last.body[at]
    if names:
        said = ", ".join(f"`{name}`" for name in names)
        are = "is a constant" if len(names) == 1 else "are constants"
        words = f"{said} of the forward {are} to a second derivative{bench.where(first)}"
        yield Edit(((last, made),), words, ran=True)


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _kept(saved: Saved, base: Tried) -> dict[str, ast.expr]:
    """Give what the backward reads of what was computed between inputs and outputs, in their terms."""
    made = _assigned(saved.forward.body)
    lasting = saved.lasting() or set()
    found: dict[str, ast.expr] = {}
    arguments = saved.keeps.args if isinstance(saved.keeps, ast.Call) else []
    for number, part in enumerate(arguments):
        for name in _taken(saved, base, number):
            found[name] = part
    grown = {name: _grown(part, made, lasting) for name, part in found.items()}
    return {name: node for name, node in grown.items() if not isinstance(node, (ast.Name, ast.Constant))}


def _taken(saved: Saved, base: Tried, number: int) -> Iterator[str]:
    """Name what the backward calls the kept tensor of a number."""
    if saved.takes is not None:
        part = saved.takes.elts[number] if number < len(saved.takes.elts) else None
        if isinstance(part, ast.Name):
            yield part.id
        return
    taken = f"{saved.context}.saved_tensors[{number}]"
    for statement in statements(base.tree):
        if isinstance(statement, ast.Assign) and ast.unparse(statement.value) == taken:
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Give what names and attributes are given, if it is given once, in a line of its own, and stays."""
    stored = [
        ast.unparse(n)
        for n in own(body)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)
    ]
    pairs = [
        pair for s in body if isinstance(s, ast.Assign) and len(s.targets) == 1
        for pair in _pairs(s.targets[0], s.value)
    ]  # fmt: skip
    written = {(ast.unparse(target), value) for target, value in pairs}
    return {name: value for name, value in written if stored.count(name) == 1 and name not in _changed(body)}


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Lay values along targets, where both are written one by one."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _changed(body: list[ast.stmt]) -> set[str]:
    """Name what is written into in place: its expression is not all that it is."""
    calls = [n.func.value for n in own(body) if isinstance(n, ast.Call) and _is_in_place(n.func)]
    parts = [n.value for n in own(body) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    return {ast.unparse(n) for n in (*calls, *parts)}


def _is_in_place(function: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(function, ast.Attribute) and function.attr.endswith("_") and function.attr[-2:] != "__"


def _grown(node: ast.expr, made: Mapping[str, ast.expr], lasting: set[str], depth: int = 6) -> ast.expr:
    """Put what names were given in their places, as far as inputs and outputs."""
    changes: dict[int, ast.AST] = {}
    for part in own([node]):
        if isinstance(part, ast.Name) and part.id in made and part.id not in lasting and depth:
            changes[id(part)] = _grown(made[part.id], made, lasting, depth - 1)
    grown: ast.expr = exchanged(node, changes)
    return grown
