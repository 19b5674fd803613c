"""Derivatives that are given as functions of their own are mended where they are written."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import WRONG, loaded

from pullback.mend.search import mend
from pullback.mend.tree import edited

RULES = loaded(Path(__file__).with_name("given.py"))
X = np.array([0.3, -1.2, 0.7], "float32")

CASES = {
    "one partial of two": (
        RULES.hypot,
        [torch.tensor(X), torch.tensor(X + 1.5)],
        "lambda a, b, output: b / output]",
    ),
    "the only partial": (RULES.logistic, [torch.tensor(X)], "partials=lambda x: torch.sigmoid(x))"),
    "a gradient beside its function": (RULES.cube, [torch.tensor(X)], "lambda dy, x: 3 * (dy * x) * x)"),
    "a tangent": (RULES.cosine, [jnp.asarray(X)], "return cosine(x), -t * jnp.sin(x)"),
    "a slope that a maker was handed": (
        RULES.negated,
        [jnp.asarray(X)],
        "lambda x: -jnp.square(x), lambda x, t: -t * x * 2)",
    ),
    "one tangent of two": (
        RULES.difference,
        [jnp.asarray(X), jnp.asarray(X + 1.5)],
        "lambda t, answer, x, y: 2 * -t * y)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_mended_where_it_is_written(name):
    function, at, text = CASES[name]
    found = mend(function, tuple(at), {}, WRONG, budget=20.0)
    assert found.patches, (found.refused, found.tried)
    assert text in edited(found.patches[0].text, found.patches[0].spans)
    assert found.patches[0].order == 2
