"""How large an edit is: few edits come before many, and little new code before much."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Tried
from pullback.mend.tree import TOKENS, children, size


def complexity(tried: Tried) -> tuple[int, int, int]:
    """Order candidates: few edits first, then little new code, then little code around it."""
    changes = [change for edit in tried.edits for change in edit.changes]
    return (
        len(tried.edits),
        sum(_new(*change) for change in changes),
        sum(_size(*change) for change in changes),
    )


def _size(old: ast.AST, new: ast.AST) -> int:
    """Measure what is written; a sign in the place of a sign is one, whatever stands beside it."""

    def operands(node: ast.AST) -> list[int]:
        return [id(part) for *_, part in children(node) if not isinstance(part, TOKENS)]

    signs = type(old) is type(new) and isinstance(new, (ast.BinOp, ast.Compare))
    return 1 if signs and operands(old) == operands(new) else _length(new)


def _length(node: ast.AST) -> int:
    """Count the nodes; a name with dots is one."""
    return size(node) - sum(isinstance(part, ast.Attribute) for part in ast.walk(node))


def _new(old: ast.AST, new: ast.AST) -> int:
    """Measure what was not there before."""
    kept = {id(part) for part in ast.walk(old)}
    return max(1, _size(old, new) - sum(_length(part) for part in _whole(new, kept)))


def _whole(node: ast.AST, kept: set[int]) -> Iterator[ast.AST]:
    """List the largest parts of a node that were there before, each once."""
    for *_, part in children(node):
        if id(part) in kept:
            kept -= {id(inner) for inner in ast.walk(part)}
            yield part
        else:
            yield from _whole(part, kept)
