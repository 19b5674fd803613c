"""A conjugate is missing, or too many."""

from __future__ import annotations

from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit

WORDS = "a conjugate"
RANK = 5
EXPLAINS = ("conjugate-missing", "sign")


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Conjugate every complex part."""
    if not bench.spelling.has("conj"):
        return
    for node, arrays in bench.expressions(base.tree):
        if arrays[0].dtype.kind == "c":
            new = bench.spelling.around(node, "conj")
            yield bench.edit(node, new, f"`{bench.text(node)}` is not conjugated")
