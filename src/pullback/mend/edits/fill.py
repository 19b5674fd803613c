"""What a part would have to be, found among the expressions that the program's own words can make."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from pullback.mend.bank import Bank
from pullback.mend.bench import Bench, Tried
from pullback.mend.edit import Edit, filled
from pullback.mend.edits.branches import conditions
from pullback.mend.edits.signs import is_one
from pullback.mend.holes import Hole, holes, quotient
from pullback.mend.lookup import Hit
from pullback.view.subject import Array

WORDS = "an expression in the program's own words, put in the place of a part, or added or multiplied to it"
RANK = 8
MOST = 60  # holes
UPSTREAM = ("upstream-ignored", "upstream-replaced", "upstream-additive", "upstream-nonlinear")
FACTOR = (
    "constant-factor", "missing-factor", "sign", "wrong-region", "wrong-operand",
    "evaluated-at-output", "output-cotangent", "broadcast-not-reduced", *UPSTREAM,
)  # fmt: skip
TERM = (
    "missing-term", "output-cotangent", "constant-factor", "missing-factor", "wrong-region",
    "residual-constant", *UPSTREAM,
)  # fmt: skip


def edits(bench: Bench, base: Tried) -> Iterator[Edit]:
    """Look every hole up: as it is, as a missing factor, as a missing term, as a factor of the cotangent."""
    wrong = [k for k, right in zip(bench.asked, base.right) if not right]
    known = sorted(holes(bench, base.tree, wrong), key=lambda hole: isinstance(hole.node, ast.Constant))
    found = known[:MOST]  # numbers last
    if not found:
        return
    bank = Bank(bench, base)
    smooth = [m for m in bench.moments if not m.bounds]
    tolerance = max(m.tolerance for m in smooth)
    targets: list[list[Array]] = []
    makers: list[tuple[Hole, str, str]] = []
    with np.errstate(all="ignore"):
        for hole in found:
            old, wanted = hole.old, hole.wanted
            if isinstance(hole.node, ast.Constant):
                targets.append(wanted)
                makers.append((hole, "whole", ""))
                continue
            moving, halves = bank.moves(wanted) is not False, list(_halves(bench, base, hole))
            targets.append(wanted)
            makers.append((hole, "whole", ""))
            if all(o.shape == w.shape for o, w in zip(old, wanted)):
                targets.append([quotient(w, o) for o, w in zip(old, wanted)])
                makers.append((hole, "factor", ""))
                targets.append([w - o for o, w in zip(old, wanted)])
                makers.append((hole, "term", ""))
            for condition, masks in () if moving else halves:
                targets.append([np.where(m, np.nan, w) for m, w in zip(masks, wanted)])
                makers.append((hole, f"branch {condition}", ""))
            for text, arrays in _upstream(bench, wanted) if moving else ():
                targets.append([quotient(w, d) for d, w in zip(arrays, wanted)])
                makers.append((hole, "upstream", text))
                if all(o.shape == w.shape for o, w in zip(old, wanted)):
                    targets.append([quotient(w - o, d) for o, d, w in zip(old, arrays, wanted)])
                    makers.append((hole, "upstream term", text))
                for condition, masks in halves if moving else ():
                    targets.append(
                        [np.where(m, np.nan, quotient(w, d)) for m, d, w in zip(masks, arrays, wanted)]
                    )
                    makers.append((hole, f"branch {condition}", f"{text} * "))
    hits = [
        (hit.rank + (kind == "whole") * 0.5, n, hole, kind, text, hit)
        for n, ((hole, kind, text), some) in enumerate(zip(makers, bank.lookup(targets, tolerance)))
        for hit in some
        if kind != "term" or ast.dump(hit.node) != ast.dump(hole.node)  # that is a factor of two
    ]
    for _, _, hole, kind, text, hit in sorted(hits, key=lambda h: h[:2]):
        yield _edit(bench, hole, kind, text, hit)


def _halves(bench: Bench, base: Tried, hole: Hole) -> Iterator[tuple[str, list[Array]]]:
    """Give the conditions under which a part is right already, and wrong where they do not hold."""
    if not bench.spelling.has("where"):
        return
    smooth = [i for i, m in enumerate(bench.moments) if not m.bounds]
    apart = []
    for o, w in zip(hole.old, hole.wanted):
        if o.shape != w.shape:
            return
        apart.append(np.abs(o - w) > 1e-6 * (np.abs(w) + 1e-3))
    if not any(a.any() for a in apart) or all(a.all() for a in apart):
        return
    for condition in conditions(bench, base):
        arrays = bench.arrays(condition)
        if arrays is None:
            continue
        try:
            masks = [np.broadcast_to(arrays[i], a.shape) for i, a in zip(smooth, apart)]
        except ValueError:
            continue
        if not any((m & a).any() for m, a in zip(masks, apart)):
            yield ast.unparse(condition), masks
        elif not any((~m & a).any() for m, a in zip(masks, apart)) and isinstance(condition, ast.Compare):
            yield f"not {ast.unparse(condition)}", [~m for m in masks]


def _upstream(bench: Bench, wanted: list[Array]) -> Iterator[tuple[str, list[Array]]]:
    """Give the cotangents in forms that fit beside a value."""
    smooth = [i for i, m in enumerate(bench.moments) if not m.bounds]
    for name in bench.upstream:
        arrays = [bench.names[name][i] for i in smooth]
        for text, index in ((name, ()), (f"{name}[..., None]", (..., None)), (f"{name}[None]", (None,))):
            shaped = [a[index] if index else a for a in arrays]
            try:
                if all(np.broadcast_shapes(a.shape, w.shape) == w.shape for a, w in zip(shaped, wanted)):
                    yield text, shaped
            except ValueError:
                continue


def _edit(bench: Bench, hole: Hole, kind: str, text: str, hit: Hit) -> Edit:
    node, said = hole.node, bench.text(hit.node)
    if kind == "factor":
        if isinstance(hit.node, ast.BinOp) and isinstance(hit.node.op, ast.Div) and is_one(hit.node.left):
            new: ast.expr = ast.BinOp(node, ast.Div(), hit.node.right)
            words = f"`{bench.text(node)}` is not divided by `{bench.text(hit.node.right)}`"
            return bench.edit(node, new, words, FACTOR)
        return bench.edit(
            node, ast.BinOp(node, ast.Mult(), hit.node), f"the factor `{said}` is missing", FACTOR
        )
    if kind == "term":
        if isinstance(hit.node, ast.UnaryOp) and isinstance(hit.node.op, ast.USub):
            less = hit.node.operand
            words = f"the term `-{bench.text(less)}` is missing"
            return bench.edit(node, ast.BinOp(node, ast.Sub(), less), words, TERM)
        return bench.edit(node, ast.BinOp(node, ast.Add(), hit.node), f"the term `{said}` is missing", TERM)
    if kind == "upstream term":
        new = filled(f"E + {text} * F", e=node, f=hit.node)
        words = f"the term `{bench.text(filled(f'{text} * F', f=hit.node))}` is missing"
        return bench.edit(node, new, words, TERM)
    if kind.startswith("branch "):
        condition = kind.removeprefix("branch ")
        arms = {"a": "E", "b": f"{text}F"}
        if condition.startswith("not "):
            condition, arms = condition.removeprefix("not "), {"a": f"{text}F", "b": "E"}
        new = filled(bench.spelling.write("where", c=condition, **arms), e=node, f=hit.node)
        return bench.edit(node, new, f"`{bench.text(node)}` is meant as `{bench.text(new)}`")
    if kind == "upstream":
        new = filled(f"{text} * E", e=hit.node)
        return bench.instead(node, new, bench.text(node), bench.text(new))
    return bench.instead(node, hit.node, bench.text(node), said)
