"""What the rules over rows and matrices are, without roundoff: one case a rule, with its points.

A case gives the true gradients, and beside each entry the sum of the sizes of its terms: errors are counted
in roundoffs of that sum. Rows are computed in long double, one decade a row; matrices in mpmath, and their
terms have the condition of the matrix in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from exact import DIGITS, DTYPES, limits

import pullback as pb

ops = pb.ops
BOUND = 4.0


@dataclass(frozen=True)
class Case:
    """Hold a rule, its truth (of arrays and a cotangent), its arrays in wide dtypes and in half precision."""

    rule: Callable[..., Any]
    truth: Callable[..., tuple[list[np.ndarray], list[np.ndarray]]]
    full: Sequence[np.ndarray]
    half: Sequence[np.ndarray]
    dy: np.ndarray

    def points(self, dtype: str) -> list[np.ndarray]:
        return [a.astype(DTYPES[dtype]) for a in (self.half if DIGITS[dtype] < 20 else self.full)]

    def cotangent(self, dtype: str) -> np.ndarray:
        return self.dy.astype(DTYPES[dtype])

    def errors(self, dtype: str, found: Sequence[Any]) -> list[np.ndarray]:
        """Count how many roundoffs of their terms gradients are off; infinite where they are not finite."""
        given = [np.asarray(a, np.longdouble) for a in (*self.points(dtype), self.cotangent(dtype))]
        with np.errstate(all="ignore"):
            expected, terms = self.truth(*given)
            return [self._error(dtype, *each) for each in zip(found, expected, terms)]

    def _error(self, dtype: str, found: Any, expected: np.ndarray, terms: np.ndarray) -> np.ndarray:
        info = limits(dtype)
        got = np.asarray(found).astype(np.longdouble)
        # what leaves the range of normal numbers is no question of digits; a factor of it may, too
        unit = 100 * float(info.smallest_normal) + 2.0 ** -DIGITS[dtype] * terms
        error = np.where(np.isfinite(got), abs(got - expected) / unit, np.inf)
        return np.where(abs(expected) < 0.99 * float(info.max), error, 0).astype(np.float64)


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────


def kept(a):
    return a.sum(-1, keepdims=True)


def probabilities(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / kept(e)


def logs(x):
    z = x - x.max(-1, keepdims=True)
    return z - np.log(kept(np.exp(z)))


def softmax(x, dy):
    p = probabilities(x)
    return [p * (dy - kept(p * dy))], [p * (abs(dy) + kept(p * abs(dy)))]


def log_softmax(x, dy):
    p = probabilities(x)
    return [dy - p * kept(dy)], [abs(dy) + p * kept(abs(dy))]


def logsumexp(x, dy):
    return [dy[:, None] * probabilities(x)], [abs(dy[:, None]) * probabilities(x)]


def normalize(x, dy):
    n = np.sqrt(kept(x * x))
    u = x / n
    return [(dy - u * kept(u * dy)) / n], [(abs(dy) + abs(u) * kept(abs(u * dy))) / n]


def safe_norm(x, dy):
    u = dy[:, None] * x / np.sqrt(kept(x * x))
    return [u], [abs(u)]


def entropy(p, dy):
    return [-dy[:, None] * (np.log(p) + 1)], [abs(dy[:, None]) * (abs(np.log(p)) + 1)]


def kl_divergence(p, q, dy):
    dy, logs = dy[:, None], (np.log(p), np.log(q))
    slopes = [dy * (logs[0] - logs[1] + 1), -dy * p / q]
    return slopes, [abs(dy) * (abs(logs[0]) + abs(logs[1]) + 1), abs(slopes[1])]


def entropy_from_logits(x, dy):
    p, log = probabilities(x), logs(x)
    h = -kept(p * np.where(p == 0, 0, log))
    return [-dy[:, None] * p * (log + h)], [abs(dy[:, None]) * p * (abs(log) + h)]


def cross_entropy(x, dy):
    t = np.eye(5)[LABELS]
    return [dy[:, None] * (probabilities(x) - t)], [abs(dy[:, None]) * (probabilities(x) + t)]


def prod(x, dy):
    others = dy[:, None] * np.stack([np.delete(x, i, -1).prod(-1) for i in range(5)], -1)
    return [others], [abs(others)]


def cumprod(x, dy):
    pairs = [
        [(dy[:, k] * np.delete(x[:, : k + 1], i, -1).prod(-1)) if k >= i else 0 * dy[:, 0] for k in range(5)]
        for i in range(5)
    ]
    terms = np.moveaxis(np.array(pairs), -1, 0)
    return [terms.sum(-1)], [abs(terms).sum(-1)]


def rms_norm(x, dy):
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    along, size = ((a * x).mean(-1, keepdims=True) for a in (dy, abs(dy) * np.sign(x)))
    return [(dy - x * r * r * along) * r], [(abs(dy) + abs(x) * r * r * size) * r]


RNG = np.random.default_rng(7)
BASE = RNG.normal(size=5)
DY = RNG.normal(size=(41, 5))
DECADES = 10.0 ** np.arange(-20, 21)
LABELS = np.arange(41) % 5
WIDE, NARROW = BASE * DECADES[:, None], BASE * 10.0 ** np.linspace(-4, 4, 41)[:, None]
FACTORS = np.sign(BASE) * 10.0 ** RNG.uniform(-0.8, 0.8, size=(41, 5))
WITH_ZEROS = np.where(np.arange(41)[:, None] % 8 == np.arange(5), 0.0, FACTORS)
SHARES = RNG.dirichlet(np.ones(5), size=41)


def row(rule: Any, truth: Any, full: np.ndarray, half: np.ndarray, lone: bool = False) -> Case:
    return Case(rule, truth, [full], [half], DY[:, 0] if lone else DY)


ROWS = {
    "softmax": row(ops.softmax, softmax, WIDE, NARROW),
    "log_softmax": row(ops.log_softmax, log_softmax, WIDE, NARROW),
    "logsumexp": row(lambda x: ops.logsumexp(x, axis=-1), logsumexp, WIDE, NARROW, True),
    "normalize": row(ops.normalize, normalize, WIDE, NARROW),
    "safe_norm": row(lambda x: ops.safe_norm(x, axis=-1), safe_norm, WIDE, NARROW, True),
    "entropy": row(ops.entropy, entropy, abs(WIDE), abs(NARROW), True),
    "kl_divergence": Case(
        ops.kl_divergence, kl_divergence, [SHARES, SHARES[::-1]], [SHARES, SHARES[::-1]], DY[:, 0]
    ),
    "entropy_from_logits": row(ops.entropy_from_logits, entropy_from_logits, WIDE, NARROW, True),
    "categorical_cross_entropy_from_logits": row(
        lambda x: ops.categorical_cross_entropy_from_logits(x, np.arange(x.shape[0]) % 5),
        cross_entropy,
        WIDE,
        NARROW,
        True,
    ),
    "prod": row(lambda x: ops.prod(x, axis=-1), prod, WITH_ZEROS, WITH_ZEROS, True),
    "cumprod": row(ops.cumprod, cumprod, WITH_ZEROS, WITH_ZEROS),
    "rms_norm": row(ops.rms_norm, rms_norm, NARROW, NARROW),
}


# ── matrices ─────────────────────────────────────────────────────────────────────────────────────────────


def exact(a):
    return mp.matrix(np.asarray(a, float).tolist())


def floats(m):
    return np.array(m.tolist(), dtype=float)


def half_diagonal(x):
    return np.tril(x, -1) + np.diag(np.diag(x)) / 2


def cholesky(a, dy):
    lower = floats(mp.cholesky(exact((a + a.T) / 2)))
    inverse = floats(exact(lower) ** -1)
    middle = inverse.T @ half_diagonal(lower.T @ dy) @ inverse
    sizes = abs(inverse).T @ half_diagonal(abs(lower).T @ abs(dy)) @ abs(inverse)
    condition = abs(lower) @ abs(inverse)
    return [(middle + middle.T) / 2], [condition @ (sizes + sizes.T) @ condition.T / 2]


def logdet(a, dy):
    inverse = floats(exact(a) ** -1)
    return [inverse.T * dy], [(abs(inverse) @ abs(a) @ abs(inverse)).T * abs(dy)]


def solve(a, b, dx):
    inverse = floats(exact(a) ** -1)
    x, db = inverse @ b, inverse.T @ dx
    near_x, near = abs(inverse) @ abs(a) @ abs(x), abs(inverse).T @ abs(a).T @ abs(db)
    return [-db @ x.T, db], [near @ abs(x).T + abs(db) @ near_x.T, near]


def matrix_sqrt(a, dy):
    w, v = mp.eigsy(exact((a + a.T) / 2))
    w, v = np.array([float(x) for x in w]), floats(v)
    sums = np.sqrt(w)[:, None] + np.sqrt(w)
    turned = v.T @ ((dy + dy.T) / 2) @ v / sums
    return [v @ turned @ v.T], [abs(v) @ (abs(v).T @ abs(dy + dy.T) @ abs(v) / sums) @ abs(v).T]


def projector(v):
    """Give what depends on the subspace of the middle two vectors, and not on the choice of them."""
    return v[..., 1:3] @ pb.namespace(v).matrix_transpose(v[..., 1:3])


def eigh(a, dy):
    """Σ vᵢvⱼᵀ·(vᵢᵀ(dy + dyᵀ)vⱼ)/(wᵢ − wⱼ) over i inside and j outside, its symmetric part."""
    v = HADAMARD
    w = np.diag(v.T @ a @ v)
    gaps = np.where(INSIDE[:, None] & ~INSIDE, w[:, None] - w, np.inf)
    found = v @ (v.T @ (dy + dy.T) @ v / gaps) @ v.T
    sizes = abs(v) @ (abs(v).T @ abs(dy + dy.T) @ abs(v) * np.max(abs(w[:, None] / gaps))) @ abs(v).T
    return [(found + found.T) / 2], [sizes]


def svd(a, dy):
    """Those of a·aᵀ have the squares of the singular values: ā = 2·S·a, where S is its gradient."""
    (inner,), (sizes,) = eigh(a @ a.T, dy)
    return [2 * inner @ a], [2 * sizes @ abs(a)]


MATRICES_RNG = np.random.default_rng(3)
G = MATRICES_RNG.normal(size=(4, 4))
POSITIVE, ANY = G @ G.T + np.eye(4), G + 2 * np.eye(4)
DY4 = MATRICES_RNG.normal(size=(4, 4))
# every dtype holds these: eigenvalues 1, 2, 2 and 4, as singular values the other way round
HADAMARD = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
INSIDE = np.array([False, True, True, False])
REPEATED, TURNED = (
    HADAMARD @ np.diag(w) @ v.T for w, v in (([1, 2, 2, 4], HADAMARD), ([4, 2, 2, 1], HADAMARD[:, ::-1]))
)

MATRICES = {
    "cholesky": Case(ops.cholesky, cholesky, [POSITIVE], [POSITIVE], DY4),
    "logdet": Case(ops.logdet, logdet, [ANY], [ANY], np.array(0.7)),
    "solve": Case(ops.solve, solve, [ANY, G], [ANY, G], DY4),
    "matrix_sqrt": Case(ops.matrix_sqrt, matrix_sqrt, [POSITIVE], [POSITIVE], DY4),
    "eigh": Case(lambda a: projector(ops.eigh(a)[1]), eigh, [REPEATED], [REPEATED], DY4),
    "svd": Case(lambda a: projector(ops.svd(a)[0]), svd, [TURNED], [TURNED], DY4),
}
