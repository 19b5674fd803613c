"""The fallback on `tf.custom_gradient` keeps the contract where TensorFlow's private functions are not."""

import numpy as np
import pytest
import tensorflow as tf
import warm

import pullback as pb
from pullback.hosts.tensorflow import HOST

X = tf.constant([0.3, -0.7, 1.1])


@pytest.fixture(autouse=True)
def public(monkeypatch):
    monkeypatch.setattr(type(HOST), "recorded", False)


def nth(f, x, order):
    if order == 0:
        return f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nth(f, x, order - 1)
    return tape.gradient(y, x)


@pb.custom_gradient
def softplus(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_values_and_orders(order, wrap):
    np.testing.assert_allclose(
        nth(wrap(softplus), X, order), nth(tf.math.softplus, X, order), rtol=1e-4, atol=1e-6
    )


def test_keywords_forms_and_statics(wrap):
    @pb.custom_gradient
    def f(x, w, *, n):
        def grad(dz, dv):
            return {"x": dz * w, "w": dz * x + n * dv}

        return x * w, n * w, grad

    w = X + 1
    with tf.GradientTape() as tape:
        tape.watch([X, w])
        z, v = wrap(lambda x, w: f(w=w, x=x, n=3))(X, w)
    dx, dw = tape.gradient([z, v], [X, w])
    np.testing.assert_allclose(dx, w)
    np.testing.assert_allclose(dw, X + 3)


def test_variables_gradgrad_and_order(wrap):
    v = tf.Variable(3.0)

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * 5, [7 * tf.reduce_sum(dy)]

        return x * v, grad

    run = wrap(lambda x: f(x))
    with tf.GradientTape() as tape:
        y = run(X)
    assert tape.gradient(y, v).numpy() == 21.0

    @pb.custom_gradient
    def cube(x):
        return x**3, lambda dy: (3 * x * x * dy, lambda ddx: 60 * x * dy * ddx)

    np.testing.assert_allclose(nth(wrap(lambda x: cube(x)), X, 2), 60 * X, rtol=1e-6)

    @pb.custom_gradient(order=1)
    def first(x):
        return x * x, lambda dy: 2 * x * dy

    np.testing.assert_allclose(nth(wrap(lambda x: first(x)), X, 1), 2 * X)
    with pytest.raises(pb.errors.SecondOrderError):
        nth(wrap(lambda x: first(x)), X, 2)


def test_the_contract_is_checked(wrap):
    @pb.custom_gradient
    def f(x, b):
        return x + b, lambda dy: (dy, dy)

    b = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(b)
        y = wrap(lambda x, b: f(x, b))(X, b) if wrap is not tf.function else f(X, b)
    with pytest.raises(pb.errors.CotangentShapeError):
        tape.gradient(y, b)


def test_an_environment_variable_chooses_it(tmp_path):
    script = tmp_path / "ask.py"
    script.write_text("import tensorflow, pullback.hosts.tensorflow as h; print(h.HOST.recorded)")
    for value, expected in (("public", "False"), ("", "True")):
        done = warm.run(script, env={"PULLBACK_TENSORFLOW": value})
        assert done.stdout.strip().endswith(expected)
