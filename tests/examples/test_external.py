"""The external rules of the examples are what they claim to be, in the checker's eyes."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from pullback.checker import check

EXAMPLES = Path(__file__).parents[2] / "examples"


def rule(example: str, name: str):
    (path,) = EXAMPLES.rglob(f"{example}.py")
    return runpy.run_path(str(path), run_name=example)[name]


@pytest.mark.parametrize(
    ("example", "name", "point"),
    [
        ("external_heat", "temperature", lambda: [tf.constant(np.linspace(0.5, 1.5, 24))]),
        ("external_c_function", "energy", lambda: [torch.tensor([-0.9, -0.5, 0.1, 0.2, 0.8]).double()]),
        (
            "external_assignment",
            "pairing",
            lambda: [tf.constant(np.random.default_rng(1).normal(size=(3, 3)))],
        ),
    ],
)
def test_the_checker_passes_it(example, name, point):
    report = check(rule(example, name), *point(), seed=1, export=False, xla=False)
    assert report.verdict == "right", report


def test_the_checker_passes_the_adjoint_of_the_ode():
    with jax.enable_x64(True):
        given = jnp.array([1.0, 0.5]), jnp.array([1.1, 0.4, 0.4, 0.1])
        report = check(rule("external_ode", "populations"), *given, seed=1, own_points=False)
    assert report.verdict == "right", report


def test_differences_agree_with_the_adjoint_to_the_accuracy_of_their_scheme():
    import pullback as pb

    temperature = rule("external_heat", "temperature")
    k = tf.constant(np.linspace(0.5, 1.5, 24))
    dy = tf.constant(np.random.default_rng(2).normal(size=(23, 6)))

    def gradient(f):
        with tf.GradientTape() as tape:
            tape.watch(k)
            y = f(k)
        return tape.gradient(y, k, output_gradients=dy).numpy()

    exact = gradient(temperature)
    function, output = temperature.external.role("function"), temperature.external.options.output
    for scheme, accuracy in (("central", 1e-8), ("forward", 1e-5)):
        found = gradient(pb.external(function, output=output, gradient=scheme))
        assert np.max(np.abs(found - exact)) < accuracy * np.max(np.abs(exact))
