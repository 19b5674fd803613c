"""A matrix has a structure that its cotangent lacks: one triangle, or the other half of a symmetric one."""

from __future__ import annotations

from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, filled

WORDS = "a triangle, or the other half of a symmetric matrix"
RANK = 6.5
EXPLAINS = ("wrong-region", "missing-term", "transposed", "constant-factor")


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Keep a triangle of every square part, or add its transpose."""
    spelling = bench.spelling
    for node, arrays in bench.expressions(base.tree):
        if arrays[0].dtype.kind not in "fc" or any(a.ndim < 2 or a.shape[-1] != a.shape[-2] for a in arrays):
            continue
        said = bench.text(node)
        for side in ("lower", "upper"):
            if spelling.has(side):
                new = spelling.around(node, side)
                yield bench.edit(node, new, f"only the {side} triangle of `{said}` is meant")
        if spelling.has("transpose"):
            turned = spelling.write("transpose", e="E")
            yield bench.edit(node, filled(f"E + {turned}", e=node), f"the transpose of `{said}` is missing")
            half = filled(f"(E + {turned}) / 2", e=node)
            yield bench.edit(node, half, f"`{said}` is not made symmetric")
