"""Holes: what a part of the gradient would have to be, at every moment, so that the result is right.

From the wanted cotangents downwards every operation that can be inverted is; entries that do not matter are
NaN. What a part must be is then looked for in the bank, whatever stands there now.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pullback.mend.bench import Bench
from pullback.mend.edit import called
from pullback.mend.moment import leaves
from pullback.mend.region import returned, statements
from pullback.view.subject import Array

DEEPEST = 12
MOST = 24  # outputs of which a whole Jacobian is measured


@dataclass(frozen=True)
class Hole:
    """Hold a part of the code, what it is, and what it would have to be, at the smooth moments."""

    node: ast.expr
    old: list[Array]
    wanted: list[Array]


def results(bench: Bench, tree: ast.Module) -> dict[int, ast.expr]:
    """Find the expression that is returned for each input, where it can be told."""
    found = returned(tree)
    if len(found) != 1:
        return {}
    node: ast.expr = found[0]
    while isinstance(node, ast.Name) and (value := assigned(tree, node.id)) is not None:
        if not isinstance(value, (ast.Tuple, ast.List, ast.Dict)) and bench.valued(node) is not None:
            break
        node = value
    leaves = list(_leaves(node))
    code = bench.region.compiled(tree)
    moment = bench.moments[0]
    parts = bench.guarded(moment.run, code)
    if parts is None:
        return {}
    given = [k for k, part in enumerate(parts) if part is not None]
    real = [leaf for leaf in leaves if not (isinstance(leaf, ast.Constant) and leaf.value is None)]
    if moment.way and len(real) != len(given) and len(real) in (1, 2):
        return dict.fromkeys(given, real[-1])  # it may reach any input; beside a tangent stands the output
    return dict(zip(given, real)) if len(given) == len(real) else {}


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from _leaves(part)
    elif isinstance(node, ast.Dict):
        keyed = [(getattr(k, "value", None), v) for k, v in zip(node.keys, node.values)]
        for _, part in sorted(keyed, key=lambda pair: str(pair[0])):
            yield from _leaves(part)
    else:
        yield node


def assigned(tree: ast.Module, name: str) -> ast.expr | None:
    """Give the expression that a name is given, if it is given one only."""
    found = [
        s.value
        for s in statements(tree)
        if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in s.targets)
    ]
    others = [
        n
        for s in statements(tree)
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    return found[0] if len(found) == 1 and len(others) == 1 else None


def holes(bench: Bench, tree: ast.Module, inputs: list[int]) -> Iterator[Hole]:
    """List the holes for some inputs, from the results downwards."""
    smooth = [i for i, moment in enumerate(bench.moments) if not moment.bounds]
    if not smooth:
        return
    roots = results(bench, tree)
    tangents = _pushed(bench, tree, smooth) if bench.moments[0].way and inputs else None
    if tangents is not None:
        with np.errstate(all="ignore"):
            yield from _down(bench, tree, smooth, *tangents, 0)
        return
    for k in inputs:
        if k in roots:
            wanted = [np.asarray(bench.moments[i].wanted[k]) for i in smooth]
            with np.errstate(all="ignore"):
                if bench.moments[0].way:
                    wanted = _before(bench, tree, smooth, roots[k], wanted, k)
                yield from _down(bench, tree, smooth, roots[k], wanted, 0)


def _pushed(bench: Bench, tree: ast.Module, smooth: list[int]) -> tuple[ast.expr, list[Array]] | None:
    """Give what a pushforward returns beside its output, and what that would have to be."""
    found = returned(tree)
    parts = found[0].elts if len(found) == 1 and isinstance(found[0], ast.Tuple) else []
    if len(parts) != 2 or len(bench.given) < 2:
        return None
    wanted = []
    for i in smooth:
        moment = bench.moments[i]
        domain, codomain = moment.problem.domain, moment.problem.codomain
        given = [leaves(bench.spaces[i].get(name)) for name in bench.given[-2:]]
        arrays = [[bench.guarded(moment.opened.array, leaf) for leaf in some] for some in given]
        moving = [t for x, t in zip(*arrays) if t is not None and t.dtype.kind in "fc"]
        if len(given[0]) != len(given[1]) or tuple(t.shape for t in moving) != tuple(domain.shapes):
            return None
        if len(codomain.shapes) != 1 or moment.jacobian is None or moment.problem.y.size > MOST:
            return None
        wanted.append((moment.jacobian() @ domain.pack(moving)).reshape(codomain.shapes[0]))
    return parts[1], wanted


def _before(
    bench: Bench, tree: ast.Module, smooth: list[int], node: ast.expr, wanted: list[Array], k: int
) -> list[Array]:
    """Give what a function would have to return, if the gradient around it only multiplies that."""
    code, old = bench.region.compiled(tree), _values(bench, smooth, node)
    found = []
    for i, w, o in zip(smooth, wanted, old or ()):
        parts = bench.guarded(bench.moments[i].run, code)
        given = None if parts is None else bench.guarded(bench.moments[i].opened.array, parts[k])
        if given is None or given.shape != w.shape or o.shape != w.shape:
            return wanted
        found.append(np.where(given == o, w, quotient(w * o, given)))
    return found or wanted


def _down(
    bench: Bench, tree: ast.Module, smooth: list[int], node: ast.expr, wanted: list[Array], depth: int
) -> Iterator[Hole]:
    old = _values(bench, smooth, node)
    if old is None or depth > DEEPEST:
        return
    if depth:
        fitted = [_fitted(w, o.shape) for w, o in zip(wanted, old)]
        if any(w is None for w in fitted):
            return
        wanted = [w for w in fitted if w is not None]
    if all(o.dtype.kind in "fciu" for o in old):
        yield Hole(node, old, wanted)
    try:
        operands = list(_inverted(bench, smooth, node, wanted))
    except ValueError:  # at another shape the operands of a wrong rule need not fit
        operands = []
    for part, needed in operands:
        if needed is not None:
            yield from _down(bench, tree, smooth, part, needed, depth + 1)
    if isinstance(node, ast.Name) and (value := assigned(tree, node.id)) is not None:
        yield from _down(bench, tree, smooth, value, wanted, depth + 1)


def _values(bench: Bench, smooth: list[int], node: ast.expr) -> list[Array] | None:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (int, float, complex)) and not isinstance(node.value, bool):
            return [np.asarray(node.value)] * len(smooth)
        return None
    arrays = bench.valued(node)
    return None if arrays is None else [arrays[i] for i in smooth]


def _fitted(wanted: Array, shape: tuple[int, ...]) -> Array | None:
    """Bring what is needed to the shape of a part that is broadcast: it must be the same along those axes."""
    if wanted.shape == shape:
        return wanted
    extra = wanted.ndim - len(shape)
    if extra < 0:
        return None
    axes = tuple(range(extra)) + tuple(
        i + extra for i, d in enumerate(shape) if d == 1 and wanted.shape[i + extra] != 1
    )
    if not axes:
        return None
    with np.errstate(all="ignore"):
        first = _nanfirst(wanted, axes)
        deviation = np.abs(wanted - first)
        if np.nanmax(np.where(np.isnan(deviation), 0, deviation), initial=0.0) > 1e-7 * (
            np.nanmax(np.abs(first), initial=0) + 1e-30
        ):
            return None
    return first.reshape(shape) if first.size == int(np.prod(shape)) else None


def _nanfirst(a: Array, axes: tuple[int, ...]) -> Array:
    mask = np.isfinite(a)
    count = mask.sum(axes, keepdims=True)
    return np.where(count > 0, np.where(mask, a, 0).sum(axes, keepdims=True) / np.maximum(count, 1), np.nan)


def _inverted(
    bench: Bench, smooth: list[int], node: ast.expr, wanted: list[Array]
) -> Iterator[tuple[ast.expr, list[Array] | None]]:
    """Give what the operands of an operation would have to be."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand, [-w for w in wanted]
    if isinstance(node, ast.BinOp):
        left, right = _values(bench, smooth, node.left), _values(bench, smooth, node.right)
        if left is None or right is None:
            return
        for part, inverse in zip((node.left, node.right), OPERANDS.get(type(node.op), ())):
            yield part, [inverse(*each) for each in zip(wanted, left, right)]
    if isinstance(node, ast.Subscript) and _adds_axes(node.slice):
        inner = _values(bench, smooth, node.value)
        if inner is not None and all(o.size == w.size for o, w in zip(inner, wanted)):
            yield node.value, [w.reshape(o.shape) for o, w in zip(inner, wanted)]
    if isinstance(node, ast.Call):
        yield from _called(bench, smooth, node, wanted)


def _adds_axes(index: ast.expr) -> bool:
    """Tell whether an index keeps all there is, and adds axes."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Constant) and p.value in (None, ...))
        or (isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None)
        or (isinstance(p, ast.Attribute) and p.attr == "newaxis")
        for p in parts
    )


def quotient(a: Array, b: Array) -> Array:
    """Divide; what is divided by zero is not known."""
    return np.where(b == 0, np.nan, a / np.where(b == 0, 1, b))


# What the operands of an operation would have to be: of what is wanted of it, and of both as they are.
OPERANDS: dict[type[ast.operator], tuple[Callable[[Array, Array, Array], Array], ...]] = {
    ast.Add: (lambda w, a, b: w - b, lambda w, a, b: w - a),
    ast.Sub: (lambda w, a, b: w + b, lambda w, a, b: a - w),
    ast.Mult: (lambda w, a, b: quotient(w, b), lambda w, a, b: quotient(w, a)),
    ast.Div: (lambda w, a, b: w * b, lambda w, a, b: quotient(a, w)),
}
SAME = ("cast", "identity", "stop_gradient", "asarray", "convert_to_tensor", "constant")
# What the operand of a function would have to be, by the name of the function.
INVERSES: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(SAME, lambda w: w),
    **dict.fromkeys(("matrix_transpose", "adjoint"), lambda w: np.swapaxes(w, -1, -2)),
    "sqrt": lambda w: np.where(w < 0, np.nan, w * w) if w.dtype.kind == "f" else w * w,
    "exp": np.log,
    "square": np.sqrt,
    "conj": np.conj,
}
PRODUCTS: dict[str, type[ast.operator]] = {
    **dict.fromkeys(("multiply", "mul"), ast.Mult),
    **dict.fromkeys(("divide", "divide_no_nan", "truediv"), ast.Div),
}


def _called(
    bench: Bench, smooth: list[int], node: ast.Call, wanted: list[Array]
) -> Iterator[tuple[ast.expr, list[Array] | None]]:
    values = bench.evaluated(node.func)
    name = str(getattr(values[0], "__name__", "")) if values else ""
    name = (name or called(node)).removesuffix("_v2")
    args = node.args
    if name == "where" and len(args) == 3:
        condition = _values(bench, smooth, args[0])
        if condition is not None:
            yield args[1], [np.where(c, w, np.nan) for c, w in zip(condition, wanted)]
            yield args[2], [np.where(c, np.nan, w) for c, w in zip(condition, wanted)]
    elif name in ("transpose", "swapaxes", "t") and len(args) <= 1 and wanted[0].ndim == 2:
        inner = args[0] if args else node.func.value if isinstance(node.func, ast.Attribute) else None
        if inner is not None:
            yield inner, [w.T for w in wanted]
    elif name == "reshape" and args:
        inner_old = _values(bench, smooth, args[0])
        if inner_old is not None and all(o.size == w.size for o, w in zip(inner_old, wanted)):
            yield args[0], [w.reshape(o.shape) for o, w in zip(inner_old, wanted)]
    elif name in INVERSES and args:
        yield args[0], [INVERSES[name](w) for w in wanted]
    elif name in PRODUCTS and len(args) == 2:
        yield from _inverted(bench, smooth, ast.BinOp(args[0], PRODUCTS[name](), args[1]), wanted)
    elif name in ("concat", "concatenate", "cat") and args and isinstance(args[0], (ast.List, ast.Tuple)):
        yield from _parts(bench, smooth, node, args[0].elts, wanted)


def _parts(
    bench: Bench, smooth: list[int], node: ast.Call, elements: list[ast.expr], wanted: list[Array]
) -> Iterator[tuple[ast.expr, list[Array] | None]]:
    """Take a concatenation apart."""
    olds = [_values(bench, smooth, e) for e in elements]
    whole = _values(bench, smooth, node)
    if any(o is None for o in olds) or whole is None:
        return
    known = [o for o in olds if o is not None]
    rank = wanted[0].ndim
    axes = [
        a for a in range(rank) if all(sum(o[0].shape[a] for o in known) == w.shape[a] for w in wanted[:1])
    ]
    for axis in axes:
        start = [0] * len(wanted)
        for element, old in zip(elements, known):
            stops = [s + o.shape[axis] for s, o in zip(start, old)]
            yield (
                element,
                [
                    np.take(w, range(s, t), axis)
                    for w, s, t in zip(wanted, start, stops)
                    if t <= w.shape[axis]
                ],
            )
            start = stops
