"""A branch turns at another value, or on another quantity, than it should.

What an arm would have to be at every entry tells where the condition must hold; a quantity whose values are
parted by that is compared with the roundest number between them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

import numpy as np

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called, parsed
from pullback.mend.holes import Hole, holes
from pullback.view.subject import Array

WORDS = "a branch: the value at which it turns"
RANK = 8.5
EXPLAINS = (
    "missing-term",
    "wrong-region",
)
LEARNS = True  # a point that refutes a number narrows the next one
STEPS = (1.0, 0.5, 0.25, 0.2, 0.1, 0.05)


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Compare the quantities in reach with round numbers, where a branch needs it."""
    wrong = [k for k, right in zip(bench.asked, base.right) if not right]
    smooth = [i for i, m in enumerate(bench.moments) if not m.bounds]
    for hole in holes(bench, base.tree, wrong):
        node = hole.node
        if not isinstance(node, ast.Call) or not called(node).startswith("where") or len(node.args) != 3:
            continue
        parted = _parted(bench, smooth, hole, node)
        if parted is None:
            continue
        for text, arrays in _quantities(bench, node.args[0], smooth):
            for sign, number in _numbers(arrays, *parted):
                new = parsed(f"{text} {sign} {number}")
                old = bench.text(node.args[0])
                words = f"the condition `{old}` stands where `{bench.text(new)}` is meant"
                yield bench.edit(node.args[0], new, words, at=node)


def _parted(
    bench: Bench, smooth: list[int], hole: Hole, node: ast.Call
) -> tuple[list[Array], list[Array]] | None:
    """Mark the entries where the condition must hold, and where it must not."""
    yes, no = [], []
    arms = [bench.arrays(arm) for arm in node.args[1:]]
    if arms[0] is None or arms[1] is None:
        return None
    for i, wanted in zip(smooth, hole.wanted):
        a, b = (np.broadcast_to(arm[i], wanted.shape) for arm in arms if arm is not None)
        slack = 1e-6 * (np.abs(wanted) + 1e-9)
        first, second = np.abs(wanted - a) <= slack, np.abs(wanted - b) <= slack
        if not (first | second | np.isnan(wanted)).all():
            return None
        yes.append(first & ~second)
        no.append(second & ~first)
    return yes, no


def _quantities(bench: Bench, condition: ast.expr, smooth: list[int]) -> Iterator[tuple[str, list[Array]]]:
    """List what a condition may compare: what it compares now first."""
    # Of the inputs alone: what is measured close to the number can be seen for them.
    inputs = [x for moment in bench.moments[:1] for x in moment.inputs if x.dtype.kind == "f"]
    names = [
        n for n, a in bench.names.items() if any(a[0].shape == x.shape and (a[0] == x).all() for x in inputs)
    ]
    texts = names + ([bench.spelling.write("abs", e=n) for n in names] if bench.spelling.has("abs") else [])
    now = ast.unparse(condition.left) if isinstance(condition, ast.Compare) else ""
    for text in sorted(texts, key=lambda t: t != now):
        arrays = bench.arrays(text)
        if arrays is not None and arrays[0].dtype.kind == "f":
            yield text, [arrays[i] for i in smooth]


def _numbers(arrays: list[Array], yes: list[Array], no: list[Array]) -> Iterator[tuple[str, str]]:
    """Give the round numbers that part the values, and the side on which the condition holds."""
    try:
        inside = np.concatenate([np.broadcast_to(a, m.shape)[m] for a, m in zip(arrays, yes)])
        outside = np.concatenate([np.broadcast_to(a, m.shape)[m] for a, m in zip(arrays, no)])
    except ValueError:
        return
    if not inside.size or not outside.size:
        return
    if inside.max() < outside.min():
        sign, low, high = "<", float(inside.max()), float(outside.min())
    elif outside.max() < inside.min():
        sign, low, high = ">", float(outside.max()), float(inside.min())
    else:
        return
    seen: set[float] = set()
    for step in STEPS:
        number = math.ceil(low / step) * step
        while number <= high and len(seen) < 6:
            if low < number < high and number not in seen:
                seen.add(number)
                yield sign, repr(int(number) if number == int(number) else round(number, 2))
            number += step
