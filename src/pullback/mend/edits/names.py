"""Another name in reach stands where one is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, parsed

WORDS = "another name"
RANK = 3
EXPLAINS = (
    "wrong-operand",
    "inputs-swapped",
    "evaluated-at-output",
    "output-cotangent",
    "upstream-ignored",
    "upstream-replaced",
    "upstream-nonlinear",
    "missing-factor",
    "constant-factor",
    "wrong-region",
    "missing-term",
    "residual-constant",
)
KEEPS = True  # may leave the first order as it is, and change the second


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Put every tensor in reach into the place of every name."""
    for node in bench.region.expressions(base.tree):
        if not isinstance(node, ast.Name) or node.id not in bench.names:
            continue
        here = bench.names[node.id]
        for name, arrays in bench.names.items():
            if name == node.id or all(a.shape == () and b.shape != () for a, b in zip(arrays, here)):
                continue
            new = parsed(name)
            yield bench.instead(node, new, node.id, name)
