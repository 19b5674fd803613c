"""The sign of a bound is a promise: on the other side of zero a clip has no inside, and nobody uses it."""

import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

QUICK = {"xla": False, "export": False}
X = np.random.default_rng(0).normal(size=(4, 5)).astype("float32") * 2
ALPHA = np.float32(1.5)

FORWARDS = {
    "clamp": lambda x, alpha: torch.clamp(x, torch.zeros(()), alpha),
    "minimum": lambda x, alpha: torch.minimum(x.relu(), alpha),
    "where": lambda x, alpha: torch.where(x < 0, 0.0, torch.where(x < alpha, x, alpha)),
}


def clip_of_torch(forward, factor=1.0):
    """Make a clip with a learned bound, as PACT has it."""

    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.save_for_backward(x, alpha)
            return forward(x, alpha)

        @staticmethod
        def backward(ctx, dy):
            x, alpha = ctx.saved_tensors
            return dy * ((x >= 0) & (x < alpha)), factor * (dy * (x >= alpha)).sum()

    return Clip.apply


@tf.custom_gradient
def clip_of_tensorflow(x, alpha):
    def grad(dy):
        inside = tf.cast((x >= 0) & (x < alpha), dy.dtype)
        return dy * inside, tf.reduce_sum(dy * tf.cast(x >= alpha, dy.dtype))

    return tf.clip_by_value(x, 0.0, alpha), grad


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_a_learned_bound_keeps_its_sign(forward, seed):
    report = pb.check(clip_of_torch(forward), torch.tensor(X), torch.tensor(ALPHA), seed=seed, **QUICK)
    assert report.verdict == "right", report
    assert any("`alpha` is a bound" in f.sentence for f in report.findings if f.verdict == "note")


def test_a_learned_bound_keeps_its_sign_on_tensorflow():
    report = pb.check(clip_of_tensorflow, tf.constant(X), tf.constant(ALPHA), seed=0, **QUICK)
    assert report.verdict == "right", report


@pytest.mark.parametrize("forward", FORWARDS.values(), ids=FORWARDS)
def test_a_wrong_gradient_of_a_bound_is_wrong(forward):
    report = pb.check(clip_of_torch(forward, 2.0), torch.tensor(X), torch.tensor(ALPHA), seed=0, **QUICK)
    assert report.verdict == "wrong"


def test_a_factor_of_one_sign_is_no_bound():
    @tf.custom_gradient
    def scaled(x, slope):
        def grad(dy):
            kept = tf.where(x * slope > 0, dy, 0.0)
            return kept * tf.abs(slope), tf.reduce_sum(kept * x)

        return tf.nn.relu(x * slope), grad

    report = pb.check(scaled, tf.constant(X), tf.constant(ALPHA), seed=0, **QUICK)
    assert report.verdict == "wrong"


def test_a_shift_of_one_sign_is_no_bound():
    @tf.custom_gradient
    def shifted(x, shift):
        def grad(dy):
            kept = tf.where(x + tf.abs(shift) > 0, dy, 0.0)
            return kept, tf.reduce_sum(kept)

        return tf.nn.relu(x + shift), grad

    report = pb.check(shifted, tf.constant(X), tf.constant(ALPHA), seed=0, **QUICK)
    assert report.verdict == "wrong"
