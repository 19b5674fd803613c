"""A function of a framework in the place of a gradient takes tensors where it has places for them only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback.errors import GradSignatureError, SurrogateError

X = jnp.array([1.0, 2.0])


def by_tensorflow(f):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def by_jax(f):
    return jax.grad(lambda x: sum(map(jnp.sum, jax.tree.leaves(f(x)))))(X)


def by_torch(f):
    x = torch.ones(2, requires_grad=True)
    y = f(x)
    return torch.autograd.grad(sum(map(torch.sum, y if isinstance(y, tuple) else [y])), x)


def rule_with(grad, outputs):
    @pb.custom_gradient
    def f(x):
        return (tuple(x * k for k in range(1, outputs + 1)) if outputs > 1 else 2 * x), grad

    return f


REFUSED = [
    (by_tensorflow, tf.cos, 2, "`cos` takes 1 positional argument"),
    (by_tensorflow, tf.reduce_sum, 2, "`reduce_sum` takes 1 positional argument"),
    (by_tensorflow, tf.add, 3, "`add` takes 2 positional arguments"),
    (by_jax, jnp.sum, 2, "`sum` takes 1 positional argument"),
    (by_jax, jnp.multiply, 1, "`multiply` takes 2 positional arguments"),
    (by_jax, jnp.sin, 2, "`sin` takes 1 positional argument"),
    (by_torch, torch.nn.functional.relu, 2, "`relu` takes 1 positional argument"),
]


@pytest.mark.parametrize(("differentiate", "grad", "outputs", "words"), REFUSED)
def test_a_cotangent_is_not_taken_for_an_option(differentiate, grad, outputs, words):
    with pytest.raises(GradSignatureError, match=words):
        differentiate(rule_with(grad, outputs))


@pytest.mark.parametrize(
    ("differentiate", "grad", "outputs", "expected"),
    [
        (by_tensorflow, tf.negative, 1, -1.0),
        (by_tensorflow, tf.add, 2, 2.0),
        (by_jax, jnp.negative, 1, -1.0),
        (by_jax, jnp.add, 2, 2.0),
        (by_torch, torch.nn.functional.relu, 1, 1.0),
        (by_torch, torch.add, 2, 2.0),
    ],
)
def test_a_function_that_takes_the_cotangents_is_a_gradient(differentiate, grad, outputs, expected):
    (got,) = (
        [differentiate(rule_with(grad, outputs))]
        if differentiate is not by_torch
        else differentiate(rule_with(grad, outputs))
    )
    assert np.allclose(got, expected)


def test_a_ufunc_with_too_few_arguments_is_refused_by_every_replacement():
    with pytest.raises(SurrogateError, match=r"`add` takes \(x1, x2\)"):
        pb.surrogate(jnp.rint, like=jnp.add)(X)
    with pytest.raises(GradSignatureError, match=r"`add` takes \(x1, x2\)"):
        by_jax(lambda x: pb.map_gradient(x, jnp.add))


def test_a_compiled_program_tells_of_an_error_in_an_external_pullback_in_full():
    @pb.external(output=lambda x: x)
    def f(x):
        return np.sin(x)

    @f.pullback
    def _(dy, x):
        return np.ones(7)

    with pytest.raises(pb.errors.CotangentShapeError) as eager:
        by_jax(f)
    for differentiate, raised in ((jax.jit(jax.grad(lambda x: f(x).sum())), jax.errors.JaxRuntimeError),):
        with pytest.raises(raised) as compiled:
            differentiate(X)
        text = str(compiled.value)
        assert f"CotangentShapeError: {eager.value}" in text
        assert "numpy/callback.py" not in text.partition("CotangentShapeError")[2]
    with pytest.raises(tf.errors.UnknownError) as compiled:
        tf.function(lambda: by_tensorflow(f))()
    assert f"CotangentShapeError: {eager.value}" in str(compiled.value)
