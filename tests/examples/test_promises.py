"""The rules of the examples are what they claim to be: the derivative, or that of the function they name.

The judge is a central difference in float64, which shares no code with the rules.
"""

import inspect
import runpy
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

EXAMPLES = Path(__file__).parents[2] / "examples"

# example → rule → shapes of its tensor arguments
SHAPES = {
    "elementwise_partials": {"hypot": [(2, 1), (3,)]},
    "leaky_relu_gradient": {"relu": [(6,)]},
    "loss_with_its_own_gradient": {"squared_error": [(4, 3), (4, 3)]},
    "many_inputs_outputs": {"square": [(3,)], "mix": [(3,), (3,)], "affine": [(2, 3), (3,), (3,)]},
    "newton_second_order": {"energy": [(3,), (3,)]},
    "non_differentiable": {"kink": [(5,)], "round_through": [(5,)]},
    "replace_gradient": {"sign": [(5,)], "square": [(5,)]},
    "stable_log1pexp": {"log1pexp": [(5,)]},
    "stable_softmax": {"softmax": [(2, 4)]},
}
RULES = [(example, name) for example, rules in SHAPES.items() for name in rules]


def rules_of(example: str) -> dict:
    space = runpy.run_path(str(EXAMPLES / "tensorflow" / f"{example}.py"), run_name=example)
    return {n: f for n, f in space.items() if inspect.isfunction(f) and hasattr(f, "rule")}


def flat(outputs) -> np.ndarray:
    return np.concatenate([np.ravel(y) for y in tf.nest.flatten(outputs)])


def difference(function, inputs, cotangent, step=1e-6):
    """Differentiate Σ cotangent · function by central differences."""
    slopes = [np.zeros_like(x) for x in inputs]
    for x, slope in zip(inputs, slopes):
        for place in np.ndindex(x.shape):
            ends = []
            for sign in (1, -1):
                moved = [np.array(z) if z is x else z for z in inputs]
                next(m for m, z in zip(moved, inputs) if z is x)[place] += sign * step
                ends.append(cotangent @ flat(function(*map(tf.constant, moved))))
            slope[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes


@pytest.mark.parametrize("example", SHAPES)
def test_every_rule_is_judged(example):
    assert set(rules_of(example)) == set(SHAPES[example])


@pytest.mark.parametrize(("example", "name"), RULES, ids=lambda part: part)
def test_gradient_is_what_it_claims(example, name):
    function = rules_of(example)[name]
    intent = function.rule.intent
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=shape) * 1.5 for shape in SHAPES[example][name]]
    cotangent = rng.normal(size=flat(function(*inputs)).size)

    tensors = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        outputs = tf.nest.flatten(function(*tensors))
        total = tf.reduce_sum(tf.concat([tf.reshape(y, [-1]) for y in outputs], 0) * cotangent)
    found = tape.gradient(total, tensors)

    claimed = intent.function if intent.kind == "like" else function
    expected = difference(claimed, inputs, cotangent)
    agree = all(np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in zip(found, expected))
    # a rule that says it differs, and does not, has the wrong intent
    assert agree == (intent.kind != "differs")
