"""Rules made by a seed, with a truth that is known: right ones, and wrong ones by a known mutation.

A rule is a composition of operations that name no framework. Its gradient is put together by the chain rule
from the derivatives of the operations, so it is right by construction; a mutation makes it wrong, and it is
kept as wrong only where the change shows at the given point, in the dtype of the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import pullback as pb

# Each operation: its value, and its derivative by x and the value.
UNARY = {
    "sin": (lambda xp, x: xp.sin(x), lambda xp, x, y: xp.cos(x)),
    "tanh": (lambda xp, x: xp.tanh(x), lambda xp, x, y: 1 - y * y),
    "exp": (lambda xp, x: xp.exp(x / 2), lambda xp, x, y: y / 2),
    "square": (lambda xp, x: x * x, lambda xp, x, y: 2 * x),
    "softplus": (lambda xp, x: xp.log(1 + xp.exp(x)), lambda xp, x, y: 1 / (1 + xp.exp(-x))),
    "logistic": (lambda xp, x: 1 / (1 + xp.exp(-x)), lambda xp, x, y: y * (1 - y)),
    "root": (lambda xp, x: xp.sqrt(1 + x * x), lambda xp, x, y: x / y),
    "leaky": (
        lambda xp, x: xp.where(x > 0, x, x / 5),
        lambda xp, x, y: xp.where(x > 0, 1 + 0 * x, 0.2 + 0 * x),
    ),
    "relu": (
        lambda xp, x: xp.where(x > 0, x, 0 * x),
        lambda xp, x, y: xp.where(x > 0, 1 + 0 * x, 0 * x),
    ),
    "rational": (lambda xp, x: x / (1 + x * x), lambda xp, x, y: (1 - x * x) / (1 + x * x) ** 2),
}
SHAPES = ("elementwise", "sum", "mean", "bias", "scale", "matmul", "two outputs", "static", "mapping", "pair")
MUTATIONS = (
    "sign",
    "factor",
    "ignored upstream",
    "square of upstream",
    "swapped",
    "dropped sum",
    "missing term",
    "branch",
)
SHOWS = 5e-3  # of the largest entry of a gradient
LARGEST = 1e6  # of a value, in float32 too: beyond it, nothing but rounding is left to see


@dataclass(frozen=True)
class Generated:
    """Hold a rule, its arguments as arrays, how it was made, if it is right, and if a wrong one shows.

    A native one is made a rule by the framework's own maker, for forward mode where it has one for that.
    """

    body: object
    args: tuple
    kwargs: dict
    made: str
    right: bool
    shows: bool
    native: str = ""


def chain(names, wrong=""):
    """Compose operations; give the value and the pullback, with one operation's derivative changed."""

    def value(xp, x):
        for name in names:
            x = UNARY[name][0](xp, x)
        return x

    def pull(xp, x, dy):
        first, steps = x, []
        for name in names:
            y = UNARY[name][0](xp, x)
            steps.append(UNARY[name][1](xp, x, y))
            x = y
        if wrong == "missing term":
            steps = steps[:-1]
        if wrong == "branch":
            steps[0] = xp.where(first > 0, steps[0], 0.5 * steps[0])
        for step in reversed(steps):
            dy = dy * step
        return dy

    return value, pull


def bodies(kind, value, pull, wrong):
    """Give the body of a rule of one shape, with its mutation."""

    def end(dx, x, dy):
        """Change the gradient of the first input."""
        if wrong == "sign":
            return -dx
        if wrong == "factor":
            return 3 * dx / 2
        return dx

    def start(dy):
        if wrong == "ignored upstream":
            return 0 * dy + 1
        return dy * dy if wrong == "square of upstream" else dy

    def elementwise(x):
        xp = pb.namespace(x)
        return value(xp, x), lambda dy: end(pull(xp, x, start(dy)), x, dy)

    def reduced(x, mean=False):
        xp = pb.namespace(x)
        y = xp.sum(value(xp, x), axis=-1)
        n = x.shape[-1] if mean else 1
        return y / n, lambda dy: end(pull(xp, x, start(dy)[..., None] + 0 * x) / n, x, dy)

    def bias(x, b):
        xp = pb.namespace(x)

        def grad(dy):
            d = pull(xp, x + b, start(dy))
            by_b = d[0] if wrong == "dropped sum" else xp.sum(d, axis=0)
            return end(d, x, dy), by_b

        return value(xp, x + b), grad

    def scale(x, b):
        xp = pb.namespace(x)

        def grad(dy):
            d = pull(xp, x * b, start(dy))
            by_b = d[0] * x[0] if wrong == "dropped sum" else xp.sum(d * x, axis=0)
            return end(d * (x if wrong == "swapped" else b), x, dy), by_b

        return value(xp, x * b), grad

    def matmul(a, b):
        xp = pb.namespace(a)
        t = xp.matrix_transpose

        def grad(dy):
            d = pull(xp, xp.matmul(a, b), start(dy))
            da = xp.matmul(d, t(b))
            return end(t(da) if wrong == "swapped" else da, a, dy), xp.matmul(t(a), d)

        return value(xp, xp.matmul(a, b)), grad

    def two(x):
        xp = pb.namespace(x)

        def grad(dy, dz):
            if wrong == "swapped":
                dy, dz = dz, dy
            return end(pull(xp, x, start(dy)) + 2 * x * dz, x, dy)

        return value(xp, x), x * x, grad

    def static(x, *, n):
        xp = pb.namespace(x)
        return value(xp, n * x), lambda dy: end(n * pull(xp, n * x, start(dy)), x, dy)

    def mapping(p, x):
        xp = pb.namespace(x)
        w = p["w"]

        def grad(dy):
            d = pull(xp, w * x, start(dy))
            return {"w": end(d * x, x, dy)}, d * w

        return value(xp, w * x), grad

    def pair(x, ab):
        xp = pb.namespace(x)
        a, b = ab

        def grad(dy):
            d = pull(xp, x * a + b, start(dy))
            return end(d * a, x, dy), (d * x, d)

        return value(xp, x * a + b), grad

    return {
        "elementwise": elementwise,
        "sum": reduced,
        "mean": lambda x: reduced(x, mean=True),
        "bias": bias,
        "scale": scale,
        "matmul": matmul,
        "two outputs": two,
        "static": static,
        "mapping": mapping,
        "pair": pair,
    }[kind]


def generated(seed):
    """Make one rule."""
    rng = np.random.default_rng([2026, seed])
    kind = SHAPES[rng.integers(len(SHAPES))]
    names = composed(rng)
    dtype = ("float32", "float64")[rng.integers(2)]
    possible = [m for m in MUTATIONS if fits(m, kind, names)]
    wrong = str(rng.choice(possible)) if rng.random() < 0.5 else ""
    n = int(rng.integers(2, 5))
    m = n if wrong == "swapped" and kind == "matmul" else int(rng.integers(2, 5))

    def draw(*shape):
        return (rng.choice([-1.0, 1.0], shape) * rng.uniform(0.2, 1.6, shape)).astype(dtype)

    args = {
        "elementwise": lambda: (draw(m, n),),
        "bias": lambda: (draw(m, n), draw(n)),
        "scale": lambda: (draw(m, n), np.abs(draw(n)) if wrong == "swapped" else draw(n)),
        "matmul": lambda: (draw(m, n), draw(n, 3)),
        "mapping": lambda: ({"w": draw(n)}, draw(n)),
        "pair": lambda: (draw(n), (draw(n), draw(n))),
    }.get(kind, lambda: (draw(m, n),))()
    body, twin = bodies(kind, *chain(names, wrong), wrong), bodies(kind, *chain(names), "")
    body.__name__ = f"rule_{seed}"
    kwargs = {"n": int(rng.integers(2, 4))} if kind == "static" else {}
    made = f"{kind} of {' of '.join(reversed(names))} in {dtype}" + (f", {wrong}" if wrong else "")
    return Generated(body, args, kwargs, made, not wrong, apart(body, twin, args, kwargs))


def composed(rng):
    """Draw operations whose composition stays finite for arguments of any rule."""
    while True:
        names = [str(n) for n in rng.choice(list(UNARY), rng.integers(1, 4))]
        with np.errstate(over="ignore"):
            if np.abs(chain(names)[0](np, np.linspace(-8, 8, 65))).max() < LARGEST:
                return names


def apart(body, twin, args, kwargs):
    """Tell whether two rules have gradients at one point that differ by more than rounding, in NumPy."""
    gradients = []
    for rule in (body, twin):
        *outputs, grad = rule(*args, **kwargs)
        rng = np.random.default_rng(5)
        found = grad(*(rng.normal(size=np.shape(y)).astype(y.dtype) for y in outputs))
        gradients.append([0.0 if g is None else g for g in pb.tree.flatten(found)[0]])
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(*gradients)]
    return any(np.abs(a - b).max() > SHOWS * np.abs(b).max() for a, b in pairs if b.size)


def fits(mutation, kind, names):
    """Tell whether a mutation changes the gradient of such a rule by more than rounding."""
    if mutation == "swapped":
        return kind in ("scale", "matmul", "two outputs")
    if mutation == "dropped sum":
        return kind in ("bias", "scale")
    return True
