"""What is written to an index overwrites what an index that stands twice brought before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, filled
from pullback.mend.region import statements

WORDS = "a sum at an index that stands twice"
RANK = 4.6
EXPLAINS = ("repeated-index", "missing-term", "wrong-region")


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Add up what a statement writes into parts of an array: `out[index] = d`, `out[index] += d`."""
    if not bench.spelling.has("accumulate"):
        return
    for statement in statements(base.tree):
        target = _target(statement)
        if target is None or not _is_indexed(bench, target.slice):
            continue
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        index = ast.Tuple(list(parts), ast.Load())
        whole = ast.Name(target.value.id, ast.Load()) if isinstance(target.value, ast.Name) else target.value
        text = bench.spelling.write("accumulate", x="X", i="I", e="E")
        new = ast.Expr(filled(text, x=whole, i=index, e=statement.value))
        said = f"`{bench.text(target)}` keeps the last of what an index brings twice"
        yield bench.edit(statement, new, said)


def _target(statement: ast.stmt) -> ast.Subscript | None:
    """Give what a statement writes a part of."""
    target: ast.expr
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        target = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return None
    return target if isinstance(target, ast.Subscript) else None


def _is_indexed(bench: Bench, index: ast.expr) -> bool:
    """Tell whether one of the indices is an array of whole numbers."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(part, (ast.Slice, ast.Starred)) for part in parts):
        return False
    known = [bench.valued(part) for part in parts]
    return any(a is not None and a[0].ndim and a[0].dtype.kind in "iu" for a in known)
