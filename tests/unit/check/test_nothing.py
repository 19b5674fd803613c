"""A rule that returns whole numbers alone leaves no question: there is nothing to differentiate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = np.array([0.4, -1.6, 2.5], "float32")


class Codes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        codes = x.round().to(torch.int32)
        ctx.mark_non_differentiable(codes)
        return codes

    @staticmethod
    def backward(ctx, dy):
        return None


@jax.custom_vjp
def codes_of_jax(x):
    return jnp.round(x).astype(jnp.int32)


codes_of_jax.defvjp(lambda x: (codes_of_jax(x), x), lambda x, dy: (jnp.zeros_like(x),))


@tf.custom_gradient
def codes_of_tensorflow(x):
    return tf.cast(tf.round(x), tf.int32), lambda dy: None


@pytest.mark.parametrize(
    ("rule", "x"),
    [
        (Codes.apply, torch.tensor(X)),
        (codes_of_jax, jnp.asarray(X)),
        (codes_of_tensorflow, tf.constant(X)),
    ],
    ids=["PyTorch", "JAX", "TensorFlow"],
)
def test_a_rule_of_whole_outputs_is_right_and_says_why(rule, x):
    report = pb.check(rule, x, seed=0)
    assert report.verdict == "right", report
    assert "right: nothing to differentiate" in str(report)
    assert pb.testing.assert_gradient(rule, x, strict=True, seed=0).resolution is None


def test_a_function_of_whole_outputs_stays_a_question():
    assert pb.check(torch.argmax, torch.tensor(X), seed=0).verdict == "undecided"
