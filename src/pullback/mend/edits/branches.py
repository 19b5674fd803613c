"""A branch is wrong: its condition, one of its arms, or what happens at ties."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, called, filled, parsed

WORDS = "a branch: its condition, an arm, ties"
RANK = 9
EXPLAINS = (
    "missing-term",
    "wrong-region",
    "surrogate",
    "nonfinite",
    "sign",
    "missing-factor",
    "repeated-index",
)


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Change conditions and arms of branches; share at ties."""
    known = conditions(bench, base)
    for node in bench.region.expressions(base.tree):
        if called(node).startswith("where") and isinstance(node, ast.Call) and len(node.args) == 3:
            yield from _arms(bench, node)
        if _is_condition(node, bench):
            for other in known:
                if ast.dump(other) != ast.dump(node):
                    here, there = bench.text(node), bench.text(other)
                    yield bench.edit(node, other, f"the condition `{here}` stands where `{there}` is meant")
                    for sign, word in (("&", "and"), ("|", "or")):
                        both = filled(f"(A) {sign} (B)", a=node, b=other)
                        yield bench.edit(node, both, f"`{there}` is missing in the condition ({word})")
    yield from _masks(bench, base, known)


def _arms(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    condition, a, b = node.args
    swapped = ast.Call(node.func, [condition, b, a], node.keywords)
    yield bench.edit(node, swapped, f"the arms of the branch on `{bench.text(condition)}` are exchanged")
    yield bench.edit(node, a, f"the branch on `{bench.text(condition)}` is too many")
    yield bench.edit(node, b, f"the branch on `{bench.text(condition)}` is too many")
    for arm, other in ((a, b), (b, a)):
        said = bench.text(arm)
        yield bench.edit(arm, filled("0 * E", e=other), f"`{said}` is meant to be zero")
        yield bench.edit(arm, filled("-E", e=other), f"`{said}` is meant as minus the other arm", at=node)
        yield bench.edit(arm, filled("E / 2", e=other), f"`{said}` is meant as half the other arm", at=node)


def _is_condition(node: ast.expr, bench: Bench) -> bool:
    if isinstance(node, ast.Constant):
        return False
    arrays = bench.valued(node)
    return arrays is not None and arrays[0].dtype.kind == "b"


def conditions(bench: Bench, base: Tried) -> list[ast.expr]:
    """List conditions: those of the code, and the usual ones of the names in reach; asked once a variant."""
    key = ("conditions", id(base.tree))
    if key not in bench.memory:
        bench.memory[key] = base.tree, list(_conditions(bench, base))
    found: list[ast.expr] = bench.memory[key][1]
    return found


def _conditions(bench: Bench, base: Tried) -> Iterator[ast.expr]:
    seen = set()
    outer = bench.region.outer
    around = [] if outer is None else [n for n in ast.walk(outer) if isinstance(n, ast.Compare)]
    masks = [parsed(n) for n, arrays in bench.names.items() if arrays[0].dtype.kind == "b"]
    texts = [n for n in bench.names if all(a.dtype.kind == "f" for a in bench.names[n])][:8]
    made = [parsed(f"{n} {sign} {value}") for n in texts for sign, value in USUAL]
    still = [n for n in texts if n not in bench.upstream][:4]
    made += [parsed(f"{a} {sign} {b}") for a, b in itertools.combinations(still, 2) for sign in "<>"]
    if bench.spelling.has("abs"):
        sized = [bench.spelling.write("abs", e=n) for n in texts]
        made += [parsed(f"{size} < {v}") for size in sized for v in ("1", "1 / 2", "2", "3")]
    for node in (*around, *masks, *bench.region.expressions(base.tree), *made):
        if (not isinstance(node, ast.Compare) and node not in masks) or ast.dump(node) in seen:
            continue
        seen.add(ast.dump(node))
        arrays = bench.arrays(node)
        if arrays is not None and arrays[0].dtype.kind == "b":
            yield node


USUAL = (("> ", "0"), ("<", "0"), ("== ", "0"), (">", "-1"), ("<", "1"), ("<", "6"), ("<", "3"), (">", "-3"))

# What a part is where a condition holds, and where it does not; and what is said of it.
MASKS = {
    ("E", "0 * E"): "is meant only where",
    ("0 * E", "E"): "is meant to be zero where",
    ("E", "-E"): "changes its sign where not",
}


def _masks(bench: Bench, base: Tried, known: list[ast.expr]) -> Iterator[Edit]:
    """Zero a part where a condition does not hold, or share it among ties."""
    spelling = bench.spelling
    for node, arrays in bench.expressions(base.tree):
        kind = arrays[0].dtype.kind
        if kind == "f" and spelling.has("where"):
            for condition in known:
                for (a, b), says in MASKS.items():
                    new = filled(spelling.write("where", c="C", a=a, b=b), c=condition, e=node)
                    yield bench.edit(node, new, f"`{bench.text(node)}` {says} `{bench.text(condition)}`")
        if kind == "f" and all(((a == 0) | (a == 1)).all() for a in arrays) and arrays[0].ndim:
            for form, axis in [("sum_all", ""), *(("sum_kept", str(k)) for k in range(arrays[0].ndim))]:
                if spelling.has(form):
                    new = filled(f"E / {spelling.write(form, e='E', axis=axis)}", e=node)
                    yield bench.edit(node, new, f"`{bench.text(node)}` is not shared among ties")
