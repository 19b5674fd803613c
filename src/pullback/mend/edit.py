"""An edit class: one kind of small change, one file each in `edits/`, found by its presence there.

Each has its words, a rank (lower is tried first), and `edits(bench, base)`, which lists changes of a variant.
`EXPLAINS` has the causes that may be measured where such an edit mends; without it, that may be any.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@", ast.Mod: "%",
    ast.FloorDiv: "//", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """Put other nodes in the places of some, and say what that means for the bug."""

    changes: tuple[tuple[ast.AST, ast.AST], ...]
    words: str
    explains: tuple[str, ...] | None = None  # the causes that it may be called; None: any
    ran: bool = False  # whether the forward ran what is new, and no kernel is fed anything else


@lru_cache(maxsize=1)
def kinds() -> tuple[ModuleType, ...]:
    """Discover the edit classes, in the order in which they are tried."""
    from pullback.mend import edits as package

    modules = [
        importlib.import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    return tuple(sorted(modules, key=lambda m: (m.RANK, m.__name__)))


def parsed(text: str) -> ast.expr:
    """Read an expression."""
    return ast.parse(text, mode="eval").body


def filled(text: str, **nodes: ast.expr) -> ast.expr:
    """Read an expression in which names in capitals stand for nodes."""
    by_name = {name.upper(): node for name, node in nodes.items()}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return by_name.get(node.id, node)

    found: ast.expr = Put().visit(parsed(text))
    return found


def called(node: ast.AST) -> str:
    """Name the function that a call calls, by its last word."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
