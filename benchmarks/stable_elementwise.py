"""The elementwise rules for `stable.py`: the obvious formula of each, and the frameworks' own functions.

Points and truth are those of the tests: numbers over 40 decades, and mpmath.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
from stable_row import Row, of

import pullback as pb

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))
import exact

SIZE = 1 << 17


def tfp(name):
    return of(f"tensorflow_probability.math.{name}")


def bce_tensorflow(x, z):
    import tensorflow as tf

    return tf.nn.sigmoid_cross_entropy_with_logits(z, x)


def bce_torch(x, z):
    import torch

    return torch.nn.functional.binary_cross_entropy_with_logits(x, z, reduction="none")


def huber_torch(x):
    import torch

    return torch.nn.functional.huber_loss(x, torch.zeros_like(x), reduction="none")


def sigmoid(xp, x):
    return 1 / (1 + xp.exp(-x))


def focal(xp, x, z):
    p = sigmoid(xp, x)
    return -z * (1 - p) ** 2 * xp.log(p) - (1 - z) * p**2 * xp.log(1 - p)


# name: the obvious formula, and by framework its own function, if it has one
FORMULAS = {
    "sigmoid": (
        sigmoid,
        {"tensorflow": of("tensorflow.sigmoid"), "jax": of("jax.nn.sigmoid"), "torch": of("torch.sigmoid")},
    ),
    "softplus": (
        lambda xp, x: xp.log(1 + xp.exp(x)),
        {
            "tensorflow": of("tensorflow.nn.softplus"),
            "jax": of("jax.nn.softplus"),
            "torch": of("torch.nn.functional.softplus"),
        },
    ),
    "log_sigmoid": (
        lambda xp, x: xp.log(sigmoid(xp, x)),
        {
            "tensorflow": of("tensorflow.math.log_sigmoid"),
            "jax": of("jax.nn.log_sigmoid"),
            "torch": of("torch.nn.functional.logsigmoid"),
        },
    ),
    "log1p": (
        lambda xp, x: xp.log(1 + x),
        {
            "tensorflow": of("tensorflow.math.log1p"),
            "jax": of("jax.numpy.log1p"),
            "torch": of("torch.log1p"),
        },
    ),
    "log1mexp": (
        lambda xp, x: xp.log(1 - xp.exp(-x)),
        {"jax": of("jax.nn.log1mexp"), "tfp.math": tfp("log1mexp")},
    ),
    "softplus_inverse": (lambda xp, x: xp.log(xp.exp(x) - 1), {"tfp.math": tfp("softplus_inverse")}),
    "logaddexp": (
        lambda xp, a, b: xp.log(xp.exp(a) + xp.exp(b)),
        {
            "tensorflow": of("tensorflow.experimental.numpy.logaddexp"),
            "jax": of("jax.numpy.logaddexp"),
            "torch": of("torch.logaddexp"),
            "tfp.math": tfp("log_add_exp"),
        },
    ),
    "logsubexp": (lambda xp, a, b: xp.log(xp.exp(a) - xp.exp(b)), {"tfp.math": tfp("log_sub_exp")}),
    "logit": (
        lambda xp, p: xp.log(p / (1 - p)),
        {"jax": of("jax.scipy.special.logit"), "torch": of("torch.logit")},
    ),
    "xlogy": (
        lambda xp, x, y: x * xp.log(y),
        {
            "tensorflow": of("tensorflow.math.xlogy"),
            "jax": of("jax.scipy.special.xlogy"),
            "torch": of("torch.xlogy"),
        },
    ),
    "xlog1py": (
        lambda xp, x, y: x * xp.log(1 + y),
        {
            "tensorflow": of("tensorflow.math.xlog1py"),
            "jax": of("jax.scipy.special.xlog1py"),
            "torch": of("torch.special.xlog1py"),
        },
    ),
    "expm1_over_x": (lambda xp, x: (xp.exp(x) - 1) / x, {}),
    "safe_sqrt": (lambda xp, x: xp.sqrt(xp.where(x > 0, x, 0.0)), {}),
    "safe_divide": (
        lambda xp, a, b: xp.where(b == 0, 0.0, a / b),
        {"tensorflow": of("tensorflow.math.divide_no_nan")},
    ),
    "safe_power": (lambda xp, x, p: xp.where(x > 0, x, 0.0) ** p, {}),
    "safe_arccos": (
        lambda xp, x: xp.acos(x),
        {"tensorflow": of("tensorflow.acos"), "jax": of("jax.numpy.arccos"), "torch": of("torch.acos")},
    ),
    "safe_arcsin": (
        lambda xp, x: xp.asin(x),
        {"tensorflow": of("tensorflow.asin"), "jax": of("jax.numpy.arcsin"), "torch": of("torch.asin")},
    ),
    "sinc": (
        lambda xp, x: xp.sin(np.pi * x) / (np.pi * x),
        {
            "tensorflow": of("tensorflow.experimental.numpy.sinc"),
            "jax": of("jax.numpy.sinc"),
            "torch": of("torch.sinc"),
        },
    ),
    "huber": (
        lambda xp, x: xp.where(xp.abs(x) <= 1, 0.5 * x * x, xp.abs(x) - 0.5),
        {"torch": huber_torch},
    ),
    "log_cosh": (lambda xp, x: xp.log(xp.cosh(x)), {"tfp.math": tfp("log_cosh")}),
    "binary_cross_entropy_from_logits": (
        lambda xp, x, z: -z * xp.log(sigmoid(xp, x)) - (1 - z) * xp.log(1 - sigmoid(xp, x)),
        {"tensorflow": bce_tensorflow, "torch": bce_torch},
    ),
    "focal_loss": (focal, {}),
}


def ordinary(name):
    """Give the points at which a rule is timed: those of its grid that are of ordinary size."""
    points = exact.TABLE[name].points("float32")
    near = np.all([(np.abs(x) < 20) & (np.abs(x) > 1e-3) | (x == 0) | (x == 1) for x in points], axis=0)
    return [np.resize(x[near], SIZE) for x in points]


def judged(name, dtype, results):
    """Give the error of the value and of each slope at each point, in units of the last place."""
    return [truth.error(result) for truth, result in zip(exact.truth(name, dtype), results)]


ROWS = [
    Row(
        name=name,
        ours=getattr(pb.ops, name),
        obvious=obvious,
        own=own,
        points=exact.TABLE[name].points,
        errors=functools.partial(judged, name),
        timed=functools.partial(ordinary, name),
        bound=4.0,
    )
    for name, (obvious, own) in FORMULAS.items()
]
