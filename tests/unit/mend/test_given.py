"""Derivatives that are given as functions of their own are mended where they are written."""

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import WRONG, loaded

from pullback.checker.finding import Finding
from pullback.mend.diff import edited
from pullback.mend.search import mend

RULES = loaded(Path(__file__).with_name("given.py"))
X = np.array([0.3, -1.2, 0.7], "float32")

CASES = {
    "one partial of two": (
        RULES.hypot,
        [torch.tensor(X), torch.tensor(X + 1.5)],
        "lambda a, b, output: b / output]",
    ),
    "the only partial": (RULES.logistic, [torch.tensor(X)], "torch.exp(x) / (1 + torch.exp(x)))"),
    "a gradient beside its function": (RULES.cube, [torch.tensor(X)], "lambda dy, x: 3 * (dy * x) * x)"),
    "the pullback of a function outside of the framework": (
        RULES.outside,
        [torch.tensor(X), torch.tensor(X + 1.5)],
        "return da * np.exp(y) + db, da * output[0] - db",
    ),
    "its partials": (
        RULES.product,
        [jnp.asarray(X), jnp.asarray(X + 1.5)],
        "partials=[lambda x, y: y, lambda x, y: x]",
    ),
    "an index that stands twice": (
        RULES.taken,
        [torch.tensor(X), torch.tensor([0, 2, 0])],
        "np.add.at(out, (index,), d)",
    ),
    "what a candidate wrote into is as it was": (
        RULES.trapezoid,
        [torch.tensor(X), torch.tensor(X + 1.5) ** 2],
        ("return d * dy / 2, d * dx / 2", "return d / 2 * dy, d * dx / 2"),
    ),
    "a tangent": (RULES.cosine, [jnp.asarray(X)], "return cosine(x), -t * jnp.sin(x)"),
    "a slope that a maker was handed": (
        RULES.negated,
        [jnp.asarray(X)],
        ("square(x), lambda x, t: -t * x * 2)", "square(x), lambda x, t: t * -x * 2)"),
    ),
    "a number that `self` holds": (RULES.layered, [torch.tensor(X)], "d * self.scale * (1 - y * y)"),
    "one tangent of two": (
        RULES.difference,
        [jnp.asarray(X), jnp.asarray(X + 1.5)],
        ("lambda t, answer, x, y: 2 * -t * y)", "lambda t, answer, x, y: 2 * t * -y)"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_mended_where_it_is_written(name):
    function, at, text = CASES[name]
    found = mend(function, tuple(at), {}, WRONG, budget=20.0)
    assert found.patches, (found.refused, found.tried)
    made = edited(found.patches[0].text, found.patches[0].spans)
    assert any(part in made for part in ([text] if isinstance(text, str) else text)), made
    assert found.patches[0].order == (1 if hasattr(function, "external") else 2)  # all that it has


def test_a_pushforward_beside_a_right_gradient_is_mended():
    failure = Finding("forward_mode", "wrong", "forward mode differs from reverse mode")
    found = mend(RULES.squared, (torch.tensor(X),), {}, replace(WRONG, findings=(failure,)), budget=20.0)
    assert found.patches, (found.refused, found.tried)
    text = edited(found.patches[0].text, found.patches[0].spans)
    assert "def squared_along(t, x):\n    return t * 2 * x\n" in text
    assert "lambda d: 2 * d * x\n" in text


def test_an_external_function_is_the_users_own_after_a_search():
    held = RULES.outside.external
    roles = dict(held.roles)
    mend(RULES.outside, (torch.tensor(X), torch.tensor(X)), {}, WRONG, budget=0.3)
    assert RULES.outside.external is held
    assert held.roles == roles
    assert held.options.retries == 2
