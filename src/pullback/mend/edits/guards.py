"""A division by zero is not guarded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, filled

WORDS = "a guard against a division by zero"
RANK = 11
EXPLAINS = ("missing-term", "nonfinite", "precision-lost", "wrong-region")


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Divide with zero where the divisor is zero."""
    for node in bench.region.expressions(base.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if bench.spelling.has("no_nan"):
                new = filled(bench.spelling.write("no_nan", a="A", b="B"), a=node.left, b=node.right)
                divisor = bench.text(node.right)
                yield bench.edit(node, new, f"the division by `{divisor}` is not guarded against zero")
            if bench.spelling.has("where") and bench.spelling.has("ones"):
                for name in bench.names:
                    ones = bench.spelling.write("ones", e=name)
                    safe = bench.spelling.write("where", c=f"{name} == 0", a=ones, b="B")
                    new = filled(f"A / {safe}", a=node.left, b=node.right)
                    words = f"`/ {bench.text(node.right)}` is not guarded where `{name}` is zero"
                    yield bench.edit(node, new, words)
