"""How arguments reach a rule: keywords, statics, variables, weights, NumPy and numbers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([0.5, -1.0, 2.0])
W = tf.constant([1.5, 0.25, -3.0])


@pb.custom_gradient
def product(x, w, scale=1.0, *, bias=None):
    def grad(dz):
        db = None if bias is None else dz
        return {"x": 10 * dz * w, "w": 100 * dz * x, "bias": db}  # not the derivative: shows the rule is used

    return scale * x * w + (0.0 if bias is None else bias), grad


CALLS = {
    "all by position": lambda x, w: product(x, w),
    "one by keyword": lambda x, w: product(x, w=w),
    "all by keyword": lambda x, w: product(x=x, w=w),
    "in another order": lambda x, w: product(w=w, x=x),
    "static by keyword": lambda x, w: product(x, w, scale=1.0),
    "keyword-only": lambda x, w: product(x, w, bias=x),
}


@pytest.mark.parametrize("how", CALLS)
def test_keywords_are_arguments_like_any_other(how, pull):
    _, (dx, dw) = pull(CALLS[how], [X, W], [tf.ones(3)])
    np.testing.assert_allclose(dx, 10 * W + (1.0 if how == "keyword-only" else 0.0))
    np.testing.assert_allclose(dw, 100 * X)


@pytest.mark.parametrize("static", [2, "two", None, len, (1, 2), [0, 1], {"k": 3}, 2.5, True])
def test_the_body_gets_statics_as_they_are(static, wrap):
    seen = []

    @pb.custom_gradient
    def f(x, option):
        seen.append(option)

        def grad(dy):
            return 7 * dy

        return 2 * x, grad

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = wrap(lambda x: f(x, static))(X)
    assert tape.gradient(y, X).numpy().tolist() == [7.0] * 3
    assert type(seen[0]) is type(static)
    assert seen[0] == static


@pytest.mark.parametrize("kind", ["tf.Variable", "Keras weight"])
def test_a_variable_as_argument_gets_its_gradient(kind, wrap):
    if kind == "tf.Variable":
        variable = tf.Variable(W)
    else:
        layer = keras.layers.Dense(1)
        layer.build((None, 3))
        variable = layer.kernel
        variable.assign(tf.reshape(W, [3, 1]))
    target = variable if kind == "tf.Variable" else variable.value

    @pb.custom_gradient
    def f(x, w):
        def grad(dz):
            return dz * w, 100 * dz * x

        return x * w, grad

    x = tf.reshape(X, target.shape)
    run = wrap(lambda: f(x, variable))
    with tf.GradientTape() as tape:
        y = run()
    np.testing.assert_allclose(tape.gradient(y, target), 100 * x)


def test_captured_variables_come_by_the_variables_keyword(wrap):
    v = tf.Variable(3.0)
    u = tf.Variable(5.0)

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            assert {w.ref() for w in variables} == {v.ref(), u.ref()}
            own = {v.ref(): 10.0, u.ref(): 20.0}
            return dy * 7, [own[w.ref()] * tf.reduce_sum(dy) for w in variables]

        return x * v * u, grad

    run = wrap(lambda x: f(x))
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = run(X)
    dx, dv, du = tape.gradient(y, [X, v, u])
    np.testing.assert_allclose(dx, [7.0] * 3)
    assert (dv.numpy(), du.numpy()) == (30.0, 60.0)


def test_a_layer_called_in_the_body_has_captured_variables(wrap):
    layer = keras.layers.Dense(2, use_bias=False, kernel_initializer="ones")
    layer.build((None, 3))

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables):
            return tf.matmul(dy, layer.kernel, transpose_b=True), [2 * tf.matmul(x, dy, transpose_a=True)]

        return layer(x), grad

    x = tf.reshape(X, [1, 3])
    run = wrap(lambda x: f(x))
    with tf.GradientTape() as tape:
        y = run(x)
    gradient = tape.gradient(y, layer.trainable_weights[0].value)
    np.testing.assert_allclose(gradient, 2 * np.tile(np.reshape(X, [3, 1]), [1, 2]))


def test_numpy_arrays_and_numbers_are_inputs(wrap):
    @pb.custom_gradient
    def f(x):
        assert isinstance(x, tf.Tensor)

        def grad(dy):
            return dy

        return x * 2, grad

    run = wrap(lambda: (f(np.array([1.0, 2.0])), f(np.float32(3)), f(4.0), f(1 + 2j)))
    a, b, c, d = run()
    assert a.dtype == tf.float64
    assert (b.dtype, b.numpy()) == (tf.float32, 6.0)
    assert (c.dtype, c.numpy()) == (tf.float32, 8.0)
    assert d.numpy() == 2 + 4j


def test_a_numpy_array_beside_a_tensor_is_an_input(pull):
    a = np.array([1.0, 2.0, 3.0], np.float32)

    @pb.custom_gradient
    def f(x, y):
        assert isinstance(y, tf.Tensor)

        def grad(dz):
            return dz * y, dz * x

        return x * y, grad

    _, (dx,) = pull(lambda x: f(x, a), [X], [tf.ones(3)])
    np.testing.assert_allclose(dx, a)


def test_a_float_beside_a_tensor_stays_a_python_number(wrap):
    @pb.custom_gradient
    def leaky(x, slope):
        assert type(slope) is float

        def grad(dy):
            return tf.where(x > 0, dy, slope * dy)

        return tf.where(x > 0, x, slope * x), grad

    x = tf.cast(X, tf.float64)  # a float32 tensor would not multiply a float64 one
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(lambda x: leaky(x, 0.1))(x)
    np.testing.assert_allclose(tape.gradient(y, x), [1.0, 0.1, 1.0])


def test_integer_tensors_need_no_gradient(pull):
    index = tf.constant([2, 0, 2])

    @pb.custom_gradient
    def take(x, index):
        def grad(dy):
            return tf.math.unsorted_segment_sum(dy, index, tf.shape(x)[0])

        return tf.gather(x, index), grad

    _, (dx,) = pull(lambda x: take(x, index), [X], [tf.constant([1.0, 10.0, 100.0])])
    np.testing.assert_allclose(dx, [10.0, 0.0, 101.0])


def test_missing_arguments_are_reported_with_the_name_of_the_function():
    with pytest.raises(
        TypeError, match=r"product \(test_arguments.py:\d+\): missing a required argument: 'w'"
    ):
        product(X)
