"""Another size is meant: the entries of all axes, or those along another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called, parsed

WORDS = "another size"
RANK = 4.2
SIZES = frozenset(("len", "size", "numel"))


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Put other sizes of tensors into the places of those that are written."""
    sizes = [text for text, _ in _known(bench)]
    for node in bench.region.expressions(base.tree):
        if not _is_size(node):
            continue
        old = ast.unparse(node)
        for new in sizes:
            if new != old:
                yield bench.instead(node, parsed(new), old, new)


def _is_size(node: ast.expr) -> bool:
    """Tell whether an expression is a size by its words: `x.shape[0]`, `len(x)`, `x.size`, `tf.size(x)`."""
    if isinstance(node, ast.Subscript):
        held = node.value
        return called(held) == "shape" or (isinstance(held, ast.Attribute) and held.attr == "shape")
    if isinstance(node, ast.Call):
        return called(node) in SIZES
    return isinstance(node, ast.Attribute) and node.attr == "size"


def written(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Put sizes into the places of numbers that equal them at the given shapes: one, or two at a time."""
    single = [*_shapes(bench, base), *_numbers(bench, base)]
    yield from single
    for a, b in combinations(single, 2):
        ((old, new), (other, newer)) = (*a.changes, *b.changes)
        if old is not other and not _holds(old, other) and not _holds(other, old):
            yield Edit(((old, new), (other, newer)), f"{a.words}; {b.words}")


def _numbers(bench: Bench, base: Tried) -> Iterator[Edit]:
    sizes = [(text, numbers[_given(bench)]) for text, numbers in _known(bench)]
    for node in ast.walk(base.tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            for text in [text for text, number in sizes if number == node.value != 1]:
                yield bench.instead(node, parsed(text), repr(node.value), text)


def _shapes(bench: Bench, base: Tried) -> Iterator[Edit]:
    for node in ast.walk(base.tree):
        numbers = _literal(node)
        if numbers and bench.spelling.has("shape"):
            for name, arrays in bench.names.items():
                if arrays[_given(bench)].shape == numbers:
                    text = bench.spelling.write("shape", e=name)
                    yield bench.instead(node, parsed(text), ast.unparse(node), text)


def _literal(node: ast.AST) -> tuple[object, ...]:
    """Give the numbers of a shape that is written out; nothing for anything else."""
    if not isinstance(node, (ast.Tuple, ast.List)) or not isinstance(node.ctx, ast.Load):
        return ()
    numbers = tuple(part.value for part in node.elts if isinstance(part, ast.Constant))
    return numbers if len(numbers) == len(node.elts) > 1 else ()


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(part is inner for part in ast.walk(outer))


def _given(bench: Bench) -> int:
    """Tell which moment has the given shapes."""
    return next((n for n, moment in enumerate(bench.moments) if moment.label == "given"), 0)


def _known(bench: Bench) -> Iterator[tuple[str, tuple[int, ...]]]:
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
                        yield bench.spelling.write(kind, e=name, axis=axis), numbers
