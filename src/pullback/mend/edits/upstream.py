"""The cotangent is not multiplied in, or not with the right axes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, filled

WORDS = "the cotangent, multiplied in"
RANK = 2
EXPLAINS = (
    "upstream-ignored",
    "upstream-replaced",
    "upstream-additive",
    "upstream-nonlinear",
    "missing-factor",
    "broadcast-not-reduced",
    "wrong-region",
    "missing-term",
)


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Multiply a part by a cotangent, as it is or with one more axis."""
    for node, arrays in bench.expressions(base.tree):
        rank = arrays[0].ndim
        for name in bench.upstream:
            d = bench.names[name][0]
            indices = [""]
            if 0 < d.ndim < rank:
                indices += ["[..., None]", "[None]"]
                indices += ["[:, None]"] if d.ndim == 1 and rank == 2 else []
                indices += ["[..., None, None]"] if d.ndim + 2 == rank else []
            for text in (f"{name}{index}" for index in indices):
                new = filled(f"{text} * E", e=node)
                words = f"`{bench.text(node)}` is not multiplied by the cotangent `{text}`"
                yield bench.edit(node, new, words)
        if isinstance(node, ast.Name) and node.id in bench.upstream and rank > 0:
            for text in ("E[..., None]", "E[None]"):
                new = filled(text, e=node)
                yield bench.edit(node, new, f"`{node.id}` lacks an axis: `{bench.text(new)}` is meant")
