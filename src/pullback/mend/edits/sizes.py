"""Another size is meant: the entries of all axes, or those along another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pullback.mend.bench import Bench, Edit, Tried
from pullback.mend.edit import called, parsed

WORDS = "another size"
RANK = 4.2
SIZES = frozenset(("len", "size", "numel"))


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Put other sizes of tensors into the places of those that are written."""
    sizes = [*_sizes(bench)]
    for node in bench.region.expressions(base.tree):
        if not _is_size(node):
            continue
        old = ast.unparse(node)
        for new in sizes:
            if new != old:
                yield Edit.of(node, parsed(new), f"`{old}` stands where `{new}` is meant{bench.where(node)}")


def _is_size(node: ast.expr) -> bool:
    """Tell whether an expression is a size by its words: `x.shape[0]`, `len(x)`, `x.size`, `tf.size(x)`."""
    if isinstance(node, ast.Subscript):
        held = node.value
        return called(held) == "shape" or (isinstance(held, ast.Attribute) and held.attr == "shape")
    if isinstance(node, ast.Call):
        return called(node) in SIZES
    return isinstance(node, ast.Attribute) and node.attr == "size"


def _sizes(bench: Bench) -> Iterator[str]:
    """List sizes of the tensors in reach, of equal ones the first: of all entries, then along each axis."""
    for whole, along in (("count", "length"), ("entries", "extent")):
        seen = set()
        for kind in filter(bench.spelling.has, (whole, along)):
            for name, arrays in bench.names.items():
                axes = range(arrays[0].ndim)
                for axis in axes if kind == along else axes[:1]:
                    numbers = tuple(a.size if kind == whole else a.shape[axis] for a in arrays)
                    if numbers not in seen:
                        seen.add(numbers)
                        yield bench.spelling.write(kind, e=name, axis=axis)
