"""A factor or a divisor is missing inside of what cannot be inverted: an argument of a call, of `@`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, filled
from pullback.mend.edits.fill import FACTOR
from pullback.mend.holes import holes
from pullback.view.subject import Array

WORDS = "a factor or a divisor, inside of a call"
RANK = 8.2
EXPLAINS = (*FACTOR, "repeated-index", "missing-term")
# A name as it is, or with an axis more at its end or before the others.
FORMS = {"{n}": (), "{n}[..., None]": (..., None), "{n}[None]": (None,)}


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Multiply and divide parts by names that fit, where no hole tells what is missing."""
    wrong = [k for k, right in zip(bench.asked, base.right) if not right]
    known = {id(hole.node) for hole in holes(bench, base.tree, wrong)}
    for node, arrays in bench.expressions(base.tree):
        if id(node) in known or any(a.dtype.kind not in "fc" for a in arrays):
            continue
        said = bench.text(node)
        for name in _fitting(bench, arrays):
            new = filled(f"E / {name}", e=node)
            yield bench.edit(node, new, f"`{said}` is not divided by `{name}`")
            new = filled(f"E * {name}", e=node)
            yield bench.edit(node, new, f"`{said}` is not multiplied by `{name}`")


def _fitting(bench: Bench, arrays: list[Array]) -> Iterator[str]:
    """Name what can stand beside a part and leave its shape as it is."""
    for name, values in bench.names.items():
        if name in bench.upstream or all((v == 1).all() for v in values):
            continue
        for form, index in FORMS.items():
            pairs = zip(values, arrays)
            if _fits([(v[index] if index else v, a) for v, a in pairs]) and (values[0].ndim or not index):
                yield form.format(n=name)


def _fits(pairs: list[tuple[Array, Array]]) -> bool:
    try:
        return all(np.broadcast_shapes(v.shape, a.shape) == a.shape for v, a in pairs)
    except ValueError:
        return False
