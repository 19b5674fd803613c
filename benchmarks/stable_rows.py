"""The rules over rows and matrices for `stable.py`: the obvious formula of each, and the frameworks' own.

Points and truth are those of the tests. Errors are in roundoffs of the sum of the terms of an entry.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
from stable_row import Row, of

import pullback as pb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))
from exact_rows import BOUND, MATRICES, projector
from exact_rows import ROWS as OVER_ROWS

LAST = {"axis": -1}
DIM = {"dim": -1}


def total(f):
    """Sum what a function gives along the last axis."""
    return lambda *xs: f(*xs).sum(-1)


def labels(x):
    return np.arange(x.shape[0]) % 5


def cross_entropy_tensorflow(x):
    import tensorflow as tf

    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels(x), x)


def cross_entropy_torch(x):
    import torch

    return torch.nn.functional.cross_entropy(x, torch.as_tensor(labels(x)), reduction="none")


def kl_torch(p, q):
    import torch

    return torch.nn.functional.kl_div(q.log(), p, reduction="none").sum(-1)


def entropy_torch(x):
    import torch

    return torch.distributions.Categorical(logits=x, validate_args=False).entropy()


def rms_torch(x):
    import torch

    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-6)


def softmax(xp, x):
    e = xp.exp(x)
    return e / xp.sum(e, axis=-1, keepdims=True)


def cross_entropy(xp, x):
    chosen = xp.asarray(labels(x)[:, None] == np.arange(x.shape[1]))
    return -xp.sum(xp.where(chosen, xp.log(softmax(xp, x)), xp.zeros_like(x)), axis=-1)


def norm(xp, x, keepdims=False):
    return xp.sqrt(xp.sum(x * x, axis=-1, keepdims=keepdims))


FEW = {"prod", "cumprod"}


def cumulated(xp, x):
    """Multiply one number after the other."""
    found = [x[:, 0]]
    for i in range(1, 5):
        found.append(found[-1] * x[:, i])
    return xp.stack(found, axis=-1)


def symmetric(f):
    """Let a function see the symmetric part: some frameworks give a gradient to one triangle alone."""
    return lambda a: f((a + pb.namespace(a).matrix_transpose(a)) / 2)


def of_symmetric(own):
    return {key: symmetric(function) for key, function in own.items()}


def rooted(xp, a):
    w, v = xp.linalg.eigh(a)
    return xp.matmul(v * xp.expand_dims(xp.sqrt(w), axis=-2), xp.matrix_transpose(v))


def three(tensorflow, jax, torch, then=lambda y: y):
    """Look up a function on each framework, some with options: (name, options)."""

    def called(name, options=None):
        function = of(name)
        return lambda *xs: then(function(*xs, **options or {}))

    names = {"tensorflow": tensorflow, "jax": jax, "torch": torch}
    return {
        key: called(*name) if isinstance(name, tuple) else called(name) for key, name in names.items() if name
    }


FORMULAS = {
    "softmax": (softmax, three("tensorflow.nn.softmax", "jax.nn.softmax", ("torch.softmax", DIM))),
    "log_softmax": (
        lambda xp, x: xp.log(softmax(xp, x)),
        three("tensorflow.nn.log_softmax", "jax.nn.log_softmax", ("torch.log_softmax", DIM)),
    ),
    "logsumexp": (
        lambda xp, x: xp.log(xp.sum(xp.exp(x), axis=-1)),
        three(
            ("tensorflow.reduce_logsumexp", LAST),
            ("jax.scipy.special.logsumexp", LAST),
            ("torch.logsumexp", DIM),
        ),
    ),
    "normalize": (
        lambda xp, x: x / norm(xp, x, True),
        three(("tensorflow.math.l2_normalize", LAST), None, ("torch.nn.functional.normalize", DIM)),
    ),
    "safe_norm": (
        norm,
        three(("tensorflow.norm", LAST), ("jax.numpy.linalg.norm", LAST), ("torch.linalg.vector_norm", DIM)),
    ),
    "entropy": (
        lambda xp, p: -xp.sum(p * xp.log(p), axis=-1),
        {"jax": total(of("jax.scipy.special.entr")), "torch": total(of("torch.special.entr"))},
    ),
    "kl_divergence": (
        lambda xp, p, q: xp.sum(p * xp.log(p / q), axis=-1),
        {
            "tensorflow": of("tensorflow.keras.losses.KLD"),
            "jax": total(of("jax.scipy.special.rel_entr")),
            "torch": kl_torch,
        },
    ),
    "entropy_from_logits": (
        lambda xp, x: -xp.sum(softmax(xp, x) * xp.log(softmax(xp, x)), axis=-1),
        {"torch": entropy_torch},
    ),
    "categorical_cross_entropy_from_logits": (
        cross_entropy,
        {"tensorflow": cross_entropy_tensorflow, "torch": cross_entropy_torch},
    ),
    "prod": (
        lambda xp, x: cumulated(xp, x)[:, -1],
        three(("tensorflow.reduce_prod", LAST), ("jax.numpy.prod", LAST), ("torch.prod", DIM)),
    ),
    "cumprod": (
        cumulated,
        three(("tensorflow.math.cumprod", LAST), ("jax.numpy.cumprod", LAST), ("torch.cumprod", DIM)),
    ),
    "rms_norm": (
        lambda xp, x: x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-6),
        {"torch": rms_torch},
    ),
    "cholesky": (
        lambda xp, a: symmetric(xp.linalg.cholesky)(a),
        of_symmetric(
            three("tensorflow.linalg.cholesky", "jax.numpy.linalg.cholesky", "torch.linalg.cholesky")
        ),
    ),
    "logdet": (
        lambda xp, a: xp.log(xp.abs(xp.linalg.det(a))),
        three(
            "tensorflow.linalg.slogdet", "jax.numpy.linalg.slogdet", "torch.linalg.slogdet", lambda y: y[1]
        ),
    ),
    "solve": (
        lambda xp, a, b: xp.matmul(xp.linalg.inv(a), b),
        three("tensorflow.linalg.solve", "jax.numpy.linalg.solve", "torch.linalg.solve"),
    ),
    "matrix_sqrt": (
        lambda xp, a: symmetric(lambda a: rooted(xp, a))(a),
        of_symmetric({"tensorflow": of("tensorflow.linalg.sqrtm")}),
    ),
    "eigh": (
        lambda xp, a: projector(symmetric(xp.linalg.eigh)(a)[1]),
        of_symmetric(
            three(
                "tensorflow.linalg.eigh",
                "jax.numpy.linalg.eigh",
                "torch.linalg.eigh",
                lambda wv: projector(wv[1]),
            )
        ),
    ),
    "svd": (
        lambda xp, a: projector(xp.linalg.svd(a, full_matrices=False)[0]),
        {
            "tensorflow": lambda a: projector(of("tensorflow.linalg.svd")(a)[1]),
            "jax": lambda a: projector(of("jax.numpy.linalg.svd")(a)[0]),
            "torch": lambda a: projector(of("torch.linalg.svd")(a)[0]),
        },
    ),
}


def ordinary(name):
    """Give float32 numbers of ordinary size: many rows, or many matrices that are definite."""
    rng = np.random.default_rng(2)
    count = len((OVER_ROWS | MATRICES)[name].full)
    if name in OVER_ROWS:
        shape = (1 << 15, 5) if name in FEW else (1 << 12, 64)
        return [rng.uniform(0.1, 1.0, size=shape).astype(np.float32) for _ in range(count)]
    square = rng.normal(size=(512, 4, 4))
    definite = square @ np.swapaxes(square, -1, -2) + 4 * np.eye(4)
    return [definite.astype(np.float32), square.astype(np.float32)][:count]


def judged(case, dtype, results):
    """Give the error of each gradient; the value, which is not judged, comes first."""
    return [np.zeros(1), *case.errors(dtype, results[1:])]


ROWS = [
    Row(
        name=name,
        ours=case.rule,
        obvious=FORMULAS[name][0],
        own=FORMULAS[name][1],
        points=case.points,
        errors=functools.partial(judged, case),
        timed=functools.partial(ordinary, name),
        bound=BOUND,
        cotangent=case.cotangent,
        page="ops/reduce.md",
    )
    for name, case in (OVER_ROWS | MATRICES).items()
]
