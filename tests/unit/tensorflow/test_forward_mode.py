"""Forward mode: derived from a linear pullback, given by a pushforward, or refused."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.hosts.tensorflow import private
from pullback.hosts.tensorflow.effects import is_jvp

X = tf.constant([0.3, -0.7, 1.1])
T = tf.constant([1.0, 2.0, -3.0])


def jvp(f, x, tangent):
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


SURROUNDINGS = {
    "eager": jvp,
    "accumulator inside": lambda f, x, t: tf.function(lambda x, t: jvp(f, x, t))(x, t),
    "accumulator outside": lambda f, x, t: jvp(tf.function(lambda x: f(x)), x, t),
    "XLA": lambda f, x, t: tf.function(lambda x, t: jvp(f, x, t), jit_compile=True)(x, t),
    "unknown shape": lambda f, x, t: tf.function(
        lambda x, t: jvp(f, x, t), input_signature=[tf.TensorSpec([None])] * 2
    )(x, t),
}
surroundings = pytest.mark.parametrize("where", SURROUNDINGS)


@surroundings
def test_a_linear_pullback_is_transposed_and_the_rule_is_used(where):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return 1.5 * dy  # not the derivative: TensorFlow would differentiate the body and give 1

        return x * 1.0, grad

    np.testing.assert_allclose(SURROUNDINGS[where](f, X, T), 1.5 * T)


@surroundings
def test_a_pullback_that_mixes_elements_is_transposed(where):
    matrix = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return tf.linalg.matvec(matrix, dy, transpose_a=True)

        return tf.linalg.matvec(matrix, x), grad

    np.testing.assert_allclose(SURROUNDINGS[where](f, X, T), tf.linalg.matvec(matrix, T))


@surroundings
def test_an_explicit_pushforward_wins(where):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy

        return x * 1.0, grad

    @f.pushforward
    def _(dx, x):
        return 42 * dx

    np.testing.assert_allclose(SURROUNDINGS[where](f, X, T), 42 * T)


@surroundings
def test_a_pushforward_may_use_the_arguments(where):
    @pb.custom_gradient
    def f(x, k=3.0):
        def grad(dy):
            return dy

        return x * 1.0, grad

    @f.pushforward
    def _(dx, x):
        return 42 * dx * tf.sin(x) + 0.0 * x

    np.testing.assert_allclose(SURROUNDINGS[where](f, X, T), 42 * T * tf.sin(X), rtol=1e-5)


@surroundings
def test_an_elementwise_rule_with_constants_in_its_partials(where):
    def value(x):
        return tf.tanh(x) * 2

    def slope(x):
        return 2.0 * (1.0 - tf.tanh(x) ** 2)

    rule = pb.elementwise(value, slope)
    np.testing.assert_allclose(SURROUNDINGS[where](rule, X, T), T * slope(X), rtol=1e-5)


@surroundings
def test_a_nonlinear_pullback_refuses_forward_mode(where):
    @pb.custom_gradient(differs="clipped")
    def clipped(x):
        def grad(dy):
            return tf.clip_by_value(dy, -1.0, 1.0)

        return x * 1.0, grad

    with pytest.raises(pb.errors.ForwardModeError, match="not linear in its cotangents"):
        SURROUNDINGS[where](clipped, X, T)


@pytest.mark.parametrize(
    "bend",
    [lambda dy: dy * dy, tf.sign, tf.round, lambda dy: dy + 1.0, tf.nn.relu, lambda dy: dy / tf.norm(dy)],
    ids=["squared", "sign", "rounded", "shifted", "relu", "normalised"],
)
def test_every_bend_is_seen(bend):
    @pb.custom_gradient(differs="bent")
    def f(x):
        def grad(dy):
            return bend(dy)

        return x * 1.0, grad

    with pytest.raises(pb.errors.ForwardModeError):
        jvp(f, X, T)


BENT_ABOVE_TWO = {
    "where": lambda x, dy: tf.where(x > 2, tf.clip_by_value(dy, -1.0, 1.0), dy),
    "cond": lambda x, dy: tf.cond(
        tf.reduce_max(x) > 2, lambda: tf.clip_by_value(dy, -1.0, 1.0), lambda: 1.0 * dy
    ),
    "sign": lambda x, dy: tf.where(x > 2, tf.sign(dy), dy),
    "shift": lambda x, dy: dy + tf.nn.relu(x - 2),
}


@surroundings
@pytest.mark.parametrize("kind", BENT_ABOVE_TWO)
def test_a_pullback_that_bends_elsewhere_is_refused_there(kind, where):
    """Every call asks at its own values; what a graph finds when it runs is an error, or NaN under XLA."""
    bend = BENT_ABOVE_TWO[kind]

    @pb.custom_gradient(differs="bent above two")
    def f(x):
        def grad(dy):
            return bend(x, dy)

        return x * 1.0, grad

    def push(x, t):
        return jvp(f, x, t)

    traced = tf.function(lambda x: f(x))
    run = {  # each is traced once, and run at both points
        "eager": push,
        "accumulator inside": tf.function(push),
        "accumulator outside": lambda x, t: jvp(traced, x, t),
        "XLA": tf.function(push, jit_compile=True),
        "unknown shape": tf.function(push, input_signature=[tf.TensorSpec([None])] * 2),
    }[where]
    np.testing.assert_allclose(run(X, T), T, rtol=1e-6)
    if where == "XLA":
        assert np.isnan(run(X + 2, T)).all()
        return
    refusals = pb.errors.ForwardModeError if where == "eager" else tf.errors.InvalidArgumentError
    with pytest.raises(refusals, match="the pullback is not linear in its cotangents"):
        run(X + 2, T)
    np.testing.assert_allclose(run(X, T), T, rtol=1e-6)


UNUSUAL = {
    "a branch": lambda x, dy: tf.cond(x[0] > 0, lambda: 2 * dy, lambda: 3 * dy),
    "a loop": lambda x, dy: tf.map_fn(lambda d: 2 * d, dy),
    "a function": lambda x, dy: tf.function(lambda d: 2 * d)(dy),
}


@surroundings
@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_linear_pullback_of_operations_that_prove_nothing_is_transposed(kind, where):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return UNUSUAL[kind](x, dy)

        return 2 * x, grad

    np.testing.assert_allclose(SURROUNDINGS[where](f, X, T), 2 * T, rtol=1e-6)


def test_a_proof_does_not_run_the_pullback_again():
    runs = []
    mask = tf.constant([True, False, True])

    @pb.custom_gradient
    def f(x, w):
        def grad(dy):
            runs.append(1)
            kept = tf.where(mask, dy / w, 0.0) + tf.zeros([3])
            return tf.reverse(kept, [0]), tf.reduce_sum(tf.stack([dy, -dy]), 0) * x

        return x * w, grad

    w = X + 2
    with tf.autodiff.ForwardAccumulator([X, w], [T, T]) as accumulator:
        y = f(X, w)
    np.testing.assert_allclose(accumulator.jvp(y), tf.where(mask, tf.reverse(T, [0]) / w, 0.0), rtol=1e-6)
    assert len(runs) == 1


@pytest.mark.parametrize(
    "cut", [tf.stop_gradient, lambda dy: tf.constant(dy.numpy())], ids=["stopped", "through NumPy"]
)
def test_a_pullback_that_cannot_be_transposed_is_refused(cut):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return 2 * cut(dy)

        return 2 * x, grad

    with pytest.raises(pb.errors.ForwardModeError, match="cannot be transposed"):
        jvp(f, X, T)


def test_a_static_argument_may_decide_on_linearity():
    @pb.custom_gradient(differs="clipped when asked")
    def f(x, limit=None):
        def grad(dy):
            return dy if limit is None else tf.clip_by_value(dy, -limit, limit)

        return x * 1.0, grad

    np.testing.assert_allclose(jvp(f, X, T), T)
    with pytest.raises(pb.errors.ForwardModeError):
        jvp(lambda x: f(x, 1.0), X, T)


def test_a_nonlinear_pullback_with_a_pushforward_is_allowed(wrap):
    @pb.custom_gradient(differs="clipped")
    def f(x):
        def grad(dy):
            return tf.clip_by_value(dy, -1.0, 1.0)

        return x * 1.0, grad

    @f.pushforward
    def _(dx, x):
        return dx

    run = wrap(lambda x, t: jvp(f, x, t))
    np.testing.assert_allclose(run(X, T), T)


def test_a_pushforward_of_two_arguments_and_outputs(wrap):
    @pb.custom_gradient
    def f(x, w):
        def grad(da, db):
            return da * w, da * x + db

        return x * w, w, grad

    @f.pushforward
    def _(dx, dw, x, w):
        return dx * w + x * dw, dw

    w = X + 1

    @wrap
    def run(x, w, t):
        with tf.autodiff.ForwardAccumulator([x, w], [t, 2 * t]) as accumulator:
            outputs = f(x, w)
        return accumulator.jvp(outputs)

    a, b = run(X, w, T)
    np.testing.assert_allclose(a, T * w + X * 2 * T, rtol=1e-6)
    np.testing.assert_allclose(b, 2 * T)


def test_a_pushforward_with_another_structure_is_refused():
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy

        return x * 1.0, grad

    @f.pushforward
    def _(dx, x):
        return dx, dx

    with pytest.raises(pb.errors.CotangentCountError, match="another structure than the outputs"):
        jvp(f, X, T)


def test_a_pushforward_does_not_run_the_body_again():
    runs = []

    @pb.custom_gradient
    def f(x):
        runs.append(1)
        noise = tf.random.uniform([3])

        def grad(dy):
            return dy

        return x + noise, grad

    @f.pushforward
    def _(dx, x):
        return dx

    np.testing.assert_allclose(jvp(f, X, T), T)
    assert len(runs) == 1


@pb.custom_gradient
def softplus(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def test_forward_over_reverse_and_reverse_over_forward(wrap):
    expected = tf.sigmoid(X) * (1 - tf.sigmoid(X))

    @wrap
    def forward_over_reverse(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = softplus(x)
            dx = tape.gradient(y, x)
        return accumulator.jvp(dx)

    @wrap
    def reverse_over_forward(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
                y = softplus(x)
            tangent = accumulator.jvp(y)
        return tape.gradient(tangent, x)

    np.testing.assert_allclose(forward_over_reverse(X), expected, rtol=1e-5)
    np.testing.assert_allclose(reverse_over_forward(X), expected, rtol=1e-5)


def test_forward_mode_of_a_captured_variable(wrap):
    v = tf.Variable(3.0)

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * v, [tf.reduce_sum(dy * x)]

        return x * v, grad

    @wrap
    def run(x, t):
        with tf.autodiff.ForwardAccumulator([x, v], [t, tf.constant(10.0)]) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    np.testing.assert_allclose(run(X, T), 3 * T + 10 * X, rtol=1e-6)


def test_a_pullback_with_a_loop_is_transposed_inside_a_function(wrap):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return tf.while_loop(lambda i, _: i < 3, lambda i, c: (i + 1, c * x), (0, dy))[1]

        return tf.identity(x), grad

    np.testing.assert_allclose(wrap(lambda x, t: jvp(f, x, t))(X, T), X**3 * T, rtol=1e-6)


def test_a_tangent_is_differentiated_in_a_variable_that_only_the_tape_follows(wrap):
    v = tf.Variable(3.0)

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * v**2, [tf.reduce_sum(dy * x)]

        return x * v, grad

    @wrap
    def run(x, t):
        with tf.GradientTape() as tape:
            tangent = jvp(f, x, t)
        return tape.gradient(tangent, v)

    np.testing.assert_allclose(run(X, T), tf.reduce_sum(6 * T), atol=1e-6)


def test_forward_mode_of_a_complex_rule():
    z = tf.constant([1 + 2j, -0.5j])
    t = tf.constant([1j, 2 - 1j])

    @pb.custom_gradient
    def square(z):
        def grad(dy):
            return dy * tf.math.conj(2 * z)

        return z * z, grad

    np.testing.assert_allclose(jvp(square, z, t), 2 * z * t, rtol=1e-6)


def test_no_tangent_of_the_tangent_is_computed_where_nobody_asks_for_it():
    @pb.custom_gradient
    def f(x):
        return tf.sin(x), lambda dy: dy * tf.cos(x)

    heard = []

    def hear(op_type, inputs, attrs, outputs, *_, **__):
        heard.append(op_type.decode() if isinstance(op_type, bytes) else op_type)
        return outputs

    private.add_op_callback(hear)
    try:
        np.testing.assert_allclose(jvp(f, X, T), tf.cos(X) * T, rtol=1e-6)
    finally:
        private.remove_op_callback(hear)
    assert not any(map(is_jvp, heard))


@pytest.mark.parametrize("outer", ["a tape", "an accumulator"])
def test_a_tangent_is_differentiated_where_somebody_asks_for_it(outer):
    @pb.custom_gradient
    def f(x):
        return tf.sin(x), lambda dy: dy * tf.cos(x)

    x, tangent = tf.linspace(-1.0, 1.0, 7), tf.ones([7])  # of a shape that TensorFlow knows nothing of yet

    def twice(f):
        if outer == "an accumulator":
            return jvp(lambda x: jvp(f, x, tangent), x, tangent)
        with tf.GradientTape() as tape:
            tape.watch(x)
            pushed = jvp(f, x, tangent)
        return tape.gradient(pushed, x)

    np.testing.assert_allclose(
        twice(lambda x: x * x), 2 * tangent
    )  # TensorFlow keeps what it traced for that
    np.testing.assert_allclose(twice(f), -tf.sin(x), rtol=1e-6)
