"""The region that is open to edits: the gradient of a rule, and what the forward computes for it alone.

It is compiled by itself, as a function of the names that the forward left behind, so that a candidate costs
its own operations and the forward never runs again.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from pullback.mend.source import Function, RefusedError, Source
from pullback.view.definition import inner

NAME = "__mended__"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class Region:
    """Hold what may be edited: statements of the forward, and last the gradient."""

    source: Source
    grad: Function
    outer: ast.FunctionDef | None  # the function around the gradient
    tree: ast.Module
    code: CodeType

    @classmethod
    def of(cls, function: FunctionType, *, alone: bool = False) -> Region:
        """Find the region of a gradient, or of what it calls; `alone` leaves the forward as it is."""
        source = Source.of(function.__code__.co_filename)
        node = source.function(function.__code__)
        if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in ast.walk(node)):
            raise RefusedError("its gradient is a generator")
        outside = around(source.tree, node)
        outer = outside if isinstance(outside, ast.FunctionDef) else None
        feeding = [] if outer is None or alone else feeders(outer, node)
        last = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
        tree = ast.Module(body=[*feeding, last], type_ignores=[])
        return cls(source, node, outer, tree, function.__code__)

    def compiled(self, tree: ast.Module, *, telling: bool = False) -> CodeType:
        """Compile a variant of the region; `telling` makes it return its names beside its result."""
        *feeding, last = tree.body
        if isinstance(last, ast.FunctionDef):
            arguments, body = last.args, list(last.body)
        else:
            function = _lambda(last)
            arguments, body = function.args, [ast.copy_location(ast.Return(function.body), function)]
        if telling:
            body = [_telling(statement) for statement in body]
        defined = ast.FunctionDef(NAME, arguments, [*feeding, *body], decorator_list=[], returns=None)
        if sys.version_info >= (3, 12):
            defined.type_params = []
        module = ast.Module([defined], [])
        ast.fix_missing_locations(module)
        code = compile(module, "<a candidate>", "exec", dont_inherit=True)
        return next(part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == NAME)

    def expressions(self, tree: ast.Module) -> Iterator[ast.expr]:
        """List the expressions of a variant that are computed, functions inside it aside."""
        for node in own(statements(tree)):
            if isinstance(node, ast.expr) and _is_read(node):
                yield node

    def parameters(self) -> list[str]:
        """Name what the gradient is handed."""
        a = self.grad.args
        return [p.arg for p in (*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs)]


def statements(tree: ast.Module) -> list[Any]:
    """List what a variant computes: statements, and for a lambda last the expression."""
    *feeding, last = tree.body
    if isinstance(last, ast.FunctionDef):
        return [*feeding, *last.body]
    return [*feeding, _lambda(last).body]


def _lambda(statement: ast.stmt) -> ast.Lambda:
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Lambda)
    return statement.value


def returned(tree: ast.Module) -> list[ast.expr]:
    """List what a variant returns."""
    last = tree.body[-1]
    if not isinstance(last, ast.FunctionDef):
        return [statements(tree)[-1]]
    return [n.value for n in own(last.body) if isinstance(n, ast.Return) and n.value is not None]


def written(grad: Callable[..., Any]) -> FunctionType:
    """Give the function that a user wrote, behind partial arguments and decorators."""
    function = inner(grad)
    if not isinstance(function, FunctionType):
        raise RefusedError("its gradient is no Python function, so there is no text to edit")
    return function


def own(nodes: Any) -> Iterator[ast.AST]:
    """List the nodes of some statements, without those of functions defined in them."""
    for node in nodes:
        yield node
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            yield from own([node.generators[0].iter])
            continue
        yield from own(ast.iter_child_nodes(node))


def numbers(tree: ast.AST) -> list[float]:
    """List the numbers with a point that code is written with."""
    found = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    return [*dict.fromkeys(value for value in found if isinstance(value, float))]


def _is_read(node: ast.expr) -> bool:
    return not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) and not isinstance(
        node, (ast.Slice, ast.Starred)
    )


def around(tree: ast.AST, inner: ast.AST) -> ast.AST | None:
    """Find the function directly around a node."""
    waiting: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while waiting:
        node, outer = waiting.pop()
        if node is inner:
            return outer
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            outer = node
        waiting += [(child, outer) for child in ast.iter_child_nodes(node)]
    return None


def feeders(outer: ast.FunctionDef, grad: Function) -> list[ast.stmt]:
    """List the statements of a forward that feed its gradient alone, in their order."""
    *rest, last = outer.body
    if not isinstance(last, ast.Return) or last.value is None:
        return []
    if any(isinstance(n, ast.Return) for n in own(rest)):
        return []
    returned = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    handed = {grad.name} if isinstance(grad, ast.FunctionDef) else set()
    needed = set()
    for part in returned:
        if part is not grad and not (isinstance(part, ast.Name) and part.id in handed):
            needed |= _names(part, skip=grad)
    found: list[ast.stmt] = []
    for statement in reversed(rest):
        if statement is grad:
            continue
        given = _given(statement)
        simple = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.FunctionDef)) and all(
            isinstance(n, (ast.Name, ast.Tuple, ast.List)) for n in _targets(statement)
        )
        reads = _names(statement, skip=grad) - (given if simple else set())
        again = given & _names(statement, skip=grad, reading=True)
        if given & needed or not simple or again or any(given & _given(s) for s in found):
            needed |= reads
        else:
            found.append(statement)
    return found[::-1]


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else []


def _given(statement: ast.stmt) -> set[str]:
    """Name what a statement gives a value to."""
    named = {statement.name} if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else set()
    return named | {
        n.id
        for n in ast.walk(statement)
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))
    }


def _names(node: ast.AST, skip: ast.AST, *, reading: bool = False) -> set[str]:
    if node is skip:
        return set()
    found = {node.id} if isinstance(node, ast.Name) and not (reading and not _is_read(node)) else set()
    for child in ast.iter_child_nodes(node):
        found |= _names(child, skip, reading=reading)
    return found


class _Telling(ast.NodeTransformer):
    """Make every `return` give the names too."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    visit_Lambda = visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value or ast.Constant(None)
        # The result first: an expression may give a name a value.
        pair = ast.Tuple([value, ast.Call(ast.Name("locals", ast.Load()), [], [])], ast.Load())
        return ast.copy_location(ast.Return(pair), node)


def _telling(statement: ast.stmt) -> ast.stmt:
    import copy

    told: ast.stmt = _Telling().visit(copy.deepcopy(statement))
    return told
