"""The gradient of a rule that reduces is right to 4 roundoffs of the sum of its terms, over forty decades.

The truth is the formula in long double, at the very numbers that the rule is given. A row of a table is one
decade, so that one call asks for all of them.
"""

import numpy as np
import pytest
from asked import ASK, DTYPES

import pullback as pb

RNG = np.random.default_rng(7)
BASE = RNG.normal(size=5)
DY = RNG.normal(size=(41, 5))
DECADES = 10.0 ** np.arange(-20, 21)


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
    return p * (dy - kept(p * dy)), p * (abs(dy) + kept(p * abs(dy)))


def log_softmax(x, dy):
    p = probabilities(x)
    return dy - p * kept(dy), abs(dy) + p * kept(abs(dy))


def logsumexp(x, dy):
    return dy[:, :1] * probabilities(x), abs(dy[:, :1]) * probabilities(x)


def normalize(x, dy):
    n = np.sqrt(kept(x * x))
    u = x / n
    return (dy - u * kept(u * dy)) / n, (abs(dy) + abs(u) * kept(abs(u * dy))) / n


def safe_norm(x, dy):
    u = x / np.sqrt(kept(x * x))
    return dy[:, :1] * u, abs(dy[:, :1] * u)


def entropy(p, dy):
    return -dy[:, :1] * (np.log(p) + 1), abs(dy[:, :1]) * (abs(np.log(p)) + 1)


def entropy_from_logits(x, dy):
    p, log = probabilities(x), logs(x)
    h = -kept(p * np.where(p == 0, 0, log))
    return -dy[:, :1] * p * (log + h), abs(dy[:, :1]) * p * (abs(log) + h)


def cross_entropy(x, dy):
    t = np.eye(5)[LABELS]
    return dy[:, :1] * (probabilities(x) - t), abs(dy[:, :1]) * (probabilities(x) + t)


def prod(x, dy):
    others = np.stack([np.delete(x, i, -1).prod(-1) for i in range(5)], -1)
    return dy[:, :1] * others, abs(dy[:, :1] * others)


def cumprod(x, dy):
    pairs = [
        [(dy[:, k] * np.delete(x[:, : k + 1], i, -1).prod(-1)) if k >= i else 0 * dy[:, 0] for k in range(5)]
        for i in range(5)
    ]
    terms = np.moveaxis(np.array(pairs), -1, 0)
    return terms.sum(-1), abs(terms).sum(-1)


def rms_norm(x, dy):
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    along = (dy * x).mean(-1, keepdims=True)
    return (dy - x * r * r * along) * r, (abs(dy) + abs(x) * r * r * abs(dy * x).mean(-1, keepdims=True)) * r


LABELS = np.arange(41) % 5
ops = pb.ops
WIDE, NARROW = BASE * DECADES[:, None], BASE * 10.0 ** np.linspace(-4, 4, 41)[:, None]
FACTORS = np.sign(BASE) * 10.0 ** RNG.uniform(-0.8, 0.8, size=(41, 5))
# name → the rule, its truth, its input in float32 and float64, and in half precision; one output a row?
TABLE = {
    "softmax": (ops.softmax, softmax, WIDE, NARROW, False),
    "log_softmax": (ops.log_softmax, log_softmax, WIDE, NARROW, False),
    "logsumexp": (lambda x: ops.logsumexp(x, axis=-1), logsumexp, WIDE, NARROW, True),
    "normalize": (ops.normalize, normalize, WIDE, NARROW, False),
    "safe_norm": (lambda x: ops.safe_norm(x, axis=-1), safe_norm, WIDE, NARROW, True),
    "entropy": (ops.entropy, entropy, np.minimum(abs(WIDE), 1 / DECADES[:1]), abs(NARROW), True),
    "entropy_from_logits": (ops.entropy_from_logits, entropy_from_logits, WIDE, NARROW, True),
    "cross_entropy": (
        lambda x: ops.categorical_cross_entropy_from_logits(x, LABELS), cross_entropy, WIDE, NARROW, True,
    ),
    "prod": (lambda x: ops.prod(x, axis=-1), prod, FACTORS, FACTORS, True),
    "cumprod": (ops.cumprod, cumprod, FACTORS, FACTORS, False),
    "rms_norm": (ops.rms_norm, rms_norm, NARROW, NARROW, False),
}  # fmt: skip


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("name", TABLE)
def test_the_gradient_is_right_to_four_roundoffs_of_its_terms(name, host):
    rule, truth, full, half, lone = TABLE[name]
    for dtype, (kind, roundoff) in DTYPES.items():
        x = (half if roundoff > 1e-5 else full).astype(kind)
        dy = DY.astype(kind)
        with np.errstate(all="ignore"):
            expected, terms = truth(np.asarray(x, np.longdouble), np.asarray(dy, np.longdouble))
        _, (found,) = ASK[host](rule, [x], [dy[:, 0] if lone else dy])
        limits = np.finfo(np.float32) if dtype == "bfloat16" else np.finfo(kind)
        # what leaves the range of normal numbers is no question of digits; a factor of it may, too
        room = 400 * float(limits.smallest_normal) + 4 * roundoff * terms
        inside = abs(expected) < 0.99 * float(limits.max)
        error = abs(np.asarray(found, np.longdouble) - expected)
        worst = (error / room)[inside].max()
        assert worst <= 1, (dtype, float(worst))
        assert np.isfinite(np.asarray(found, float)[inside]).all()
