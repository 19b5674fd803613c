"""Problems whose solutions have derivatives that are known: each a row, written once for every framework.

A row has the function that users would call, its parameters, and in NumPy the solution and its pullback.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback as pb


@dataclass(frozen=True)
class Problem:
    name: str
    solve: Callable[..., Any]
    parameters: tuple[np.ndarray, ...]
    solution: Callable[..., np.ndarray]
    pullback: Callable[..., tuple[np.ndarray, ...]]  # (dz, z, *parameters) ↦ one cotangent a parameter


# ── a square root, by Newton's iteration ─────────────────────────────────────────────────────────────────


def square(z, x):
    return z * z - x


@pb.implicit.root(square)
def square_root(init, x):
    z = init
    for _ in range(12):
        z = (z + x / z) / 2
    return z


def rooted(x):
    return square_root(np.ones(3), x)


# ── a fixed point ────────────────────────────────────────────────────────────────────────────────────────


def cosine(z, a):
    return pb.namespace(a).cos(a * z)


@pb.implicit.fixed_point(cosine)
def settled(a):
    z = 0.7 + 0 * a
    for _ in range(40):
        z = (z + cosine(z, a)) / 2
    return z


def settled_truth(a):
    z = 0.7 + 0 * a
    for _ in range(200):
        z = (z + np.cos(a * z)) / 2
    return z


# ── ridge regression: many unknowns of one structure ─────────────────────────────────────────────────────


def ridge(found, rows, y, weight):
    xp = pb.namespace(rows)
    off = xp.matmul(rows, found["slope"]) + found["offset"] - y
    return xp.sum(off * off) + weight * xp.sum(found["slope"] * found["slope"])


@pb.implicit.argmin(ridge)
def fit(rows, y, weight):
    xp = pb.namespace(rows)
    x, level = rows - xp.mean(rows, axis=0), xp.mean(y, axis=0)
    gram = xp.matmul(xp.matrix_transpose(x), x) + weight * xp.eye(rows.shape[1], dtype=rows.dtype)
    slope = xp.linalg.solve(gram, xp.matmul(xp.matrix_transpose(x), y - level))
    return {"slope": slope, "offset": level - xp.sum(xp.mean(rows, axis=0) * slope)}


def fitted(rows, y, weight):
    found = fit(rows, y, weight)
    xp = pb.namespace(rows)
    return xp.concat([found["slope"], xp.reshape(found["offset"], (1,))])


def bordered(rows, weight):
    """The matrix of the normal equations, the offset last."""
    full = np.concatenate([rows, np.ones([len(rows), 1])], 1)
    return full, full.T @ full + weight * np.diag([1.0] * rows.shape[1] + [0.0])


def fitted_truth(rows, y, weight):
    full, gram = bordered(rows, weight)
    return np.linalg.solve(gram, full.T @ y)


def fitted_pullback(dz, z, rows, y, weight):
    full, gram = bordered(rows, weight)
    u = np.linalg.solve(gram, dz)
    off = full @ z - y
    slope = -(np.outer(off, u) + np.outer(full @ u, z))[:, :-1]
    return slope, full @ u, -np.sum(u[:-1] * z[:-1])


# ── a deep equilibrium layer, too large to be written out ────────────────────────────────────────────────


def layer(z, weights, x):
    xp = pb.namespace(weights)
    return xp.tanh(xp.matmul(weights, z) + x)


@pb.implicit.fixed_point(layer)
def equilibrium(weights, x):
    z = 0 * x
    for _ in range(40):
        z = layer(z, weights, x)
    return z


def equilibrium_truth(weights, x):
    z = 0 * x
    for _ in range(200):
        z = np.tanh(weights @ z + x)
    return z


def equilibrium_pullback(dz, z, weights, x):
    slope = 1 - z * z
    u = np.linalg.solve((np.eye(len(z)) - slope[:, None] * weights).T, dz) * slope
    return np.outer(u, z), u


# ── a linear system ──────────────────────────────────────────────────────────────────────────────────────


def tridiagonal(x, diagonal):
    xp = pb.namespace(diagonal)
    zero = 0 * x[:1]
    return diagonal * x - xp.concat([x[1:], zero]) - 0.3 * xp.concat([zero, x[:-1]])


def solved(b, diagonal):
    return pb.implicit.linear_solve(tridiagonal, b, diagonal)


def matrix(diagonal):
    n = len(diagonal)
    return np.diag(diagonal) - np.eye(n, k=1) - 0.3 * np.eye(n, k=-1)


def solved_pullback(dz, z, b, diagonal):
    u = np.linalg.solve(matrix(diagonal).T, dz)
    return u, -u * z


_rng = np.random.default_rng(5)
PROBLEMS = [
    Problem(
        "square root by Newton",
        rooted,
        (np.array([0.5, 2.0, 9.0]),),
        np.sqrt,
        lambda dz, z, x: (dz / (2 * z),),
    ),
    Problem(
        "fixed point of a cosine",
        settled,
        (np.array([0.4, 1.0, 1.3]),),
        settled_truth,
        lambda dz, z, a: (-dz * z * np.sin(a * z) / (1 + a * np.sin(a * z)),),
    ),
    Problem(
        "ridge regression",
        fitted,
        (_rng.normal(size=(6, 2)), _rng.normal(size=6), np.array(0.7)),
        fitted_truth,
        fitted_pullback,
    ),
    Problem(
        "deep equilibrium",
        equilibrium,
        (_rng.normal(size=(40, 40)) * 0.06, _rng.normal(size=40)),
        equilibrium_truth,
        equilibrium_pullback,
    ),
    Problem(
        "linear system",
        solved,
        (_rng.normal(size=5), 3 + _rng.random(5)),
        lambda b, diagonal: np.linalg.solve(matrix(diagonal), b),
        solved_pullback,
    ),
]


def directions(arrays, seed):
    """Draw a direction for each array."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) for a in arrays]


def second(problem, dz, along, step=1e-5):
    """Differentiate the known pullback along a direction, by central differences."""
    sides = []
    for sign in (1, -1):
        moved = [p + sign * step * d for p, d in zip(problem.parameters, along)]
        sides.append(problem.pullback(dz, problem.solution(*moved), *moved))
    return [(a - b) / (2 * step) for a, b in zip(*sides)]
