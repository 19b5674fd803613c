"""How a function ends: by a `return`, or by running off its last line.

Both give None. The one says on purpose that there is no gradient; the other is a `return` forgotten on one of
the paths. Nothing at run time tells them apart, so the code is read, and only when None was returned.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import itertools
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any


def runs_off(function: Any) -> bool:
    """Tell whether a function can end without a `return`; no where nobody can read its code."""
    return any(map(_read, _codes(function)))


def _codes(function: Any) -> Iterator[CodeType]:
    """List the code that runs when a function is called: its own, and that of what it wraps."""
    for _ in range(16):  # decorators
        function = getattr(function, "func", getattr(function, "python_function", function))
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is None and not isinstance(function, type):
            code = getattr(type(function).__call__, "__code__", None)  # an object that is called
        if code is not None:
            yield code
        if not hasattr(function, "__wrapped__"):
            return
        function = function.__wrapped__


@functools.lru_cache(maxsize=4096)
def _read(code: CodeType) -> bool:
    if code.co_name == "<lambda>" or code.co_flags & inspect.CO_GENERATOR:
        return False
    try:
        parsed = ast.parse("".join(inspect.findsource(code)[0]))
    except (OSError, TypeError, SyntaxError):  # typed at a prompt, compiled from a string, or changed since
        return _runs_off_by_code(code)
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                if "__autograph_generated_file" in code.co_filename:
                    node = _Undone(node).visit(node)
                return _goes_on(node.body)
    return False


class _Undone(ast.NodeTransformer):
    """Turn what AutoGraph has made of a function back into the `if` and `return` that it was.

    Inside a `tf.function` nobody has the function itself. AutoGraph writes `do_return = True` for a return,
    and `ag__.if_stmt(test, if_body, else_body, …)`, with the branches as functions, for an `if`.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.blocks = {n.name: n.body for n in ast.walk(function) if isinstance(n, ast.FunctionDef)}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.generic_visit(node) if node is self.function else node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.Pass() if ".ret(" in ast.unparse(node) else node  # the one at the end, on every path

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        written = ast.unparse(node)
        return ast.Return() if written.startswith("do_return") and written.endswith("= True") else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "ag__.if_stmt":
            return node
        chosen, other = ([self.visit(s) for s in self.blocks.get(ast.unparse(a), [])] for a in call.args[1:3])
        if ast.unparse(call.args[0]).startswith("ag__.not_(do_return"):  # the rest, unless it has returned
            other = [ast.Raise()]
        return ast.If(call.args[0], chosen, other)


# ── by the source ────────────────────────────────────────────────────────────────────────────────────────


def _goes_on(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether a block can be left at its end."""
    return all(map(_is_passed, statements))


def _is_passed(statement: ast.stmt) -> bool:
    """Tell whether what stands behind a statement can be reached."""
    if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return False
    if isinstance(statement, ast.Assert):
        return not (isinstance(statement.test, ast.Constant) and not statement.test.value)
    if isinstance(statement, ast.If):
        return _goes_on(statement.body) or _goes_on(statement.orelse)
    if isinstance(statement, (ast.For, ast.While)):
        test = statement.test if isinstance(statement, ast.While) else None
        endless = isinstance(test, ast.Constant) and bool(test.value)
        return _breaks(statement.body) or (not endless and _goes_on(statement.orelse))
    if isinstance(statement, ast.With):
        return _goes_on(statement.body)
    if isinstance(statement, ast.Try):
        tried = [*statement.body, *statement.orelse]
        ways = [tried, *(handler.body for handler in statement.handlers)]
        return _goes_on(statement.finalbody) and any(map(_goes_on, ways))
    if isinstance(statement, ast.Match):
        last = statement.cases[-1]
        catches_all = (
            last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        )
        return not catches_all or any(_goes_on(case.body) for case in statement.cases)
    return True


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether a loop with this body has a `break` of its own."""
    for statement in statements:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        inner = isinstance(statement, (ast.For, ast.While))
        for name in ("orelse",) if inner else ("body", "orelse", "finalbody"):
            if _breaks(getattr(statement, name, [])):
                return True
        parts = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
        if any(_breaks(part.body) for part in parts):
            return True
    return False


# ── without it ───────────────────────────────────────────────────────────────────────────────────────────


def _runs_off_by_code(code: CodeType) -> bool:
    """Tell it by where the compiled code says that it stands.

    A `return` that is written has a place of its own, though it may be compiled to several. One that the
    compiler added has that of the statement before it, which other instructions have too. Blocks that catch
    exceptions blur this: they are not judged.
    """
    table: Any = getattr(code, "co_exceptiontable", b"")
    if not hasattr(code, "co_positions") or table:
        return False
    instructions: list[Any] = list(dis.get_instructions(code))
    for before, last in itertools.pairwise(instructions):
        constant = last if last.opname == "RETURN_CONST" else before
        if not last.opname.startswith("RETURN") or not constant.opname.endswith("_CONST"):
            continue
        if constant.argval is None and last.positions is not None and last.positions.col_offset is not None:
            others = [i for i in instructions if i is not before and not i.opname.startswith("RETURN")]
            if any(i.positions == last.positions for i in others):
                return True
    return False
