"""An accumulator inside a `tf.function` that pushes through another one asks nobody: refused, or linear."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.errors import ForwardModeError

X = tf.constant([1.0, 2.0])


def squared():
    @pb.custom_gradient
    def f(x):
        return 2 * x, lambda dy: dy * dy

    return f


def with_pushforward():
    @pb.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 2 * x

    f.pushforward(lambda dx, x: 100.0 * dx)
    return f


def linear():
    @pb.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 2 * x

    return f


def pushed(inner):
    @tf.function
    def outer(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = inner(x)
        return accumulator.jvp(y)

    return outer(X)


def pulled(inner):
    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        return tape.gradient(y, x)

    return outer(X)


@pytest.mark.parametrize("make", [squared, with_pushforward])
@pytest.mark.parametrize("before", [False, True], ids=["first", "after a gradient"])
def test_what_would_be_transposed_unasked_is_refused(make, before):
    inner = tf.function(make())
    expected = pulled(make())
    if before:
        assert np.allclose(pulled(inner), expected)
    with pytest.raises(ForwardModeError, match="open the accumulator outside"):
        pushed(inner)
    assert np.allclose(pulled(inner), expected)


@pytest.mark.parametrize("before", [False, True], ids=["first", "after a gradient"])
def test_a_linear_pullback_is_transposed(before):
    inner = tf.function(linear())
    if before:
        pulled(inner)
    assert np.allclose(pushed(inner), 2 * X)


@pytest.mark.parametrize("make", [squared, with_pushforward, linear])
def test_a_gradient_is_differentiated_as_before(make):
    def second(inner):
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = inner(X) ** 2
            dx = tape.gradient(y, X)
        return outer.gradient(dx, X)

    assert np.allclose(second(tf.function(make())), second(make()))
