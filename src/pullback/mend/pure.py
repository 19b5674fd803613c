"""Whether code looks pure: only that is run with edits in it.

One pass over the gradient and the functions of the user that it calls. What writes, prints, asks the system
or changes what it was not given is named; what comes from a package that computes is believed.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from pullback import hosts
from pullback.rule import cells

COMPUTING = (
    *hosts.ROOTS, "numpy", "math", "cmath", "operator", "functools", "itertools", "pullback", "keras",
    "scipy",
    "builtins", "array_api_compat", "opt_einsum", "einops", "typing", "collections", "jaxlib", "ml_dtypes",
    "equinox", "dataclasses", "numbers", "fractions", "decimal", "_operator", "tf_keras", "copy", "enum",
)  # fmt: skip
SPEAKING = {
    "print", "open", "input", "exec", "eval", "setattr", "delattr", "compile", "breakpoint", "exit", "quit",
    "__import__", "globals", "vars", "print_v2", "write_file", "read_file", "py_function", "numpy_function",
    "io_callback", "system", "popen", "save", "savez", "tofile", "seed", "manual_seed", "set_seed",
    "set_random_seed",
}  # fmt: skip
CHANGING = {
    "assign",
    "assign_add",
    "assign_sub",
    "append",
    "extend",
    "insert",
    "remove",
    "clear",
    "update",
    "write",
}


def impurity(tree: ast.AST, space: dict[str, Any], seen: set[int] | None = None) -> str | None:
    """Name what looks impure in code that runs with these names; None if nothing does.

    `seen` are the ids of functions that were looked at before.
    """
    return next(_found(tree, space, stored(tree), set() if seen is None else seen), None)


def stored(tree: ast.AST) -> set[str]:
    """Name what code gives a value to, or is handed."""
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


def writes(tree: ast.AST) -> bool:
    """Tell whether code writes into arrays in place: of what an edit hands it, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if (name.endswith("_") and not name.endswith("__")) or name == "at":
                return True
    return False


def _found(tree: ast.AST, space: dict[str, Any], local: set[str], seen: set[int]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield f"it gives a value to `{node.names[0]}`, which is not its own"
        written = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
        if written and (isinstance(node, ast.Attribute) or _root(node) not in local):
            yield f"it changes `{ast.unparse(node)}`"
        if isinstance(node, ast.Call):
            yield from _call(node, space, local, seen)


def _call(node: ast.Call, space: dict[str, Any], local: set[str], seen: set[int]) -> Iterator[str]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in SPEAKING:
        yield f"it calls `{name}`"
    if isinstance(function, ast.Attribute) and name in CHANGING and _root(function) not in local:
        yield f"it calls `{ast.unparse(function)}`"
    value = _resolved(function, space)
    if value is None or id(value) in seen:
        return
    seen.add(id(value))
    inner = inspect.unwrap(value) if callable(value) else value
    module = str(getattr(inner, "__module__", None) or getattr(type(inner), "__module__", "") or "")
    if module.partition(".")[0] in COMPUTING:
        return
    if isinstance(inner, types.FunctionType):
        yield from _inside(inner, seen)
    elif isinstance(inner, (types.BuiltinFunctionType, types.ModuleType)):
        yield f"it calls `{ast.unparse(function)}`, which is not known to compute only"


def _inside(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return  # a lambda in the middle of a line, or typed in
    found = impurity(tree, {**function.__globals__, **dict(cells(function))}, seen)
    if found:
        yield f"`{function.__name__}`, which it calls: {found}"


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _resolved(node: ast.AST, space: dict[str, Any]) -> Any:
    """Find what a dotted name means, without running anything but attribute reads of modules."""
    if isinstance(node, ast.Name):
        return space.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, space)
        return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None
    return None
