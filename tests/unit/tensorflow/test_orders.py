"""Second and higher order: derived, given by `gradgrad`, or refused."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([0.3, -0.7, 1.1], tf.float64)


def nth(f, x, order):
    """Differentiate the sum of f `order` times."""
    if order == 0:
        return f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nth(f, x, order - 1)
    return tape.gradient(y, x)


SURROUNDINGS = {
    "eager": lambda f, x, n: nth(f, x, n),
    "tape inside": lambda f, x, n: tf.function(lambda x: nth(f, x, n))(x),
    "tape outside": lambda f, x, n: nth(tf.function(lambda x: f(x)), x, n),
    "one inside, the rest outside": lambda f, x, n: nth(tf.function(lambda x: nth(f, x, 1)), x, n - 1),
    "XLA": lambda f, x, n: tf.function(lambda x: nth(f, x, n), jit_compile=True)(x),
    "unknown shape": lambda f, x, n: tf.function(
        lambda x: nth(f, x, n), input_signature=[tf.TensorSpec(None, tf.float64)]
    )(x),
}
surroundings = pytest.mark.parametrize("where", SURROUNDINGS)


@pb.custom_gradient
def softplus(x):
    e = tf.exp(x)  # a residual that depends on the input

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@pb.custom_gradient
def softmax_like(x):
    y = tf.nn.softmax(x)  # the residual is the output

    def grad(dy):
        return y * (dy - tf.reduce_sum(dy * y, axis=-1, keepdims=True))

    return y, grad


@surroundings
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_residuals_computed_in_the_body_are_differentiated(where, order):
    actual = SURROUNDINGS[where](softplus, X, order)
    np.testing.assert_allclose(actual, nth(tf.math.softplus, X, order), rtol=1e-8)


@surroundings
def test_an_output_kept_as_residual_is_differentiated(where):
    def square(f):  # of a scaled x: the entries of a softmax's own gradient sum to zero, whatever it is
        return lambda x: tf.square(f(x * tf.constant([1.0, 2.0, 4.0], tf.float64)))

    actual, expected = SURROUNDINGS[where](square(softmax_like), X, 2), nth(square(tf.nn.softmax), X, 2)
    assert np.all(np.abs(expected) > 1e-3)
    np.testing.assert_allclose(actual, expected, rtol=1e-8)


@pb.custom_gradient
def cube(x):
    def grad(dy):
        dx = 3 * x * x * dy

        def gradgrad(ddx):
            return 60 * x * dy * ddx  # ten times the derivative: shows that it is used

        return dx, gradgrad

    return x**3, grad


@surroundings
def test_an_explicit_second_order_is_used(where):
    np.testing.assert_allclose(SURROUNDINGS[where](cube, X, 1), 3 * X**2)
    np.testing.assert_allclose(SURROUNDINGS[where](cube, X, 2), 60 * X)
    np.testing.assert_allclose(SURROUNDINGS[where](cube, X, 3), [60.0] * 3)


@surroundings
def test_an_explicit_second_order_is_linked_to_the_cotangent(where):
    """d/dx of exp(cube(x)) needs the dependence of dx on dy, which `gradgrad` does not say."""

    @pb.custom_gradient
    def right_cube(x):
        def grad(dy):
            return 3 * x * x * dy, lambda ddx: 6 * x * dy * ddx

        return x**3, grad

    actual = SURROUNDINGS[where](lambda x: tf.exp(right_cube(x)), X, 2)
    np.testing.assert_allclose(actual, nth(lambda x: tf.exp(x**3), X, 2), rtol=1e-10)


def test_an_explicit_second_order_of_two_inputs(wrap):
    @pb.custom_gradient
    def f(x, w):
        def grad(dz):
            def gradgrad(ddx, ddw):
                return 2 * w * dz * ddx + 2 * x * dz * ddw, 2 * x * dz * ddx

            return 2 * x * w * dz, x * x * dz, gradgrad

        return x * x * w, grad

    w = X + 2

    def mixed(f):
        with tf.GradientTape() as outer:
            outer.watch([X, w])
            with tf.GradientTape() as inner:
                inner.watch([X, w])
                y = tf.reduce_sum(wrap(lambda x, w: f(x, w))(X, w))
            dx, dw = inner.gradient(y, [X, w])
            total = tf.reduce_sum(dx * [1.0, 2.0, 3.0]) + tf.reduce_sum(dw * [5.0, 7.0, 11.0])
        return outer.gradient(total, [X, w])

    np.testing.assert_allclose(mixed(f), mixed(lambda x, w: x * x * w), rtol=1e-10)


def test_gradgrad_with_a_wrong_signature_is_refused():
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy, lambda: dy

        return x, grad

    with pytest.raises(pb.errors.GradSignatureError, match="one per cotangent"):
        nth(f, X, 2)


@pb.custom_gradient(order=1)
def first_only(x):
    def grad(dy):
        return 2 * x * dy

    return x * x, grad


@surroundings
def test_order_one_gives_the_first_and_refuses_the_second_derivative(where):
    np.testing.assert_allclose(SURROUNDINGS[where](first_only, X, 1), 2 * X)
    if where == "XLA":
        with pytest.raises(pb.errors.SecondOrderError, match="a second derivative was asked for"):
            SURROUNDINGS[where](first_only, X, 2)
        return
    # A graph traces second derivatives ahead of need, so there the refusal comes when it runs.
    refusals = (pb.errors.SecondOrderError, tf.errors.InvalidArgumentError)
    with pytest.raises(refusals, match="a second derivative was asked for"):
        SURROUNDINGS[where](first_only, X, 2)


@surroundings
@pytest.mark.parametrize("cut", [tf.stop_gradient, lambda c: tf.numpy_function(lambda v: v, [c], tf.float64)])
def test_order_one_refuses_also_where_the_residual_is_cut_off(where, cut):
    if where == "XLA":
        cut = tf.stop_gradient  # XLA has no Python callbacks

    @pb.custom_gradient(order=1)
    def sine(x):
        c = cut(tf.cos(x))

        def grad(dy):
            return dy * c

        return tf.sin(x), grad

    refusals = (pb.errors.SecondOrderError, tf.errors.InvalidArgumentError)
    with pytest.raises(refusals, match="a second derivative was asked for"):
        SURROUNDINGS[where](lambda x: x * sine(x), X, 2)


def test_order_one_does_not_disturb_a_persistent_tape(wrap):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = wrap(lambda x: first_only(x))(X)
    np.testing.assert_allclose(tape.gradient(y, X), 2 * X)
    np.testing.assert_allclose(tape.gradient(y, X), 2 * X)


def test_a_body_that_draws_random_numbers_refuses_to_be_run_twice():
    @pb.custom_gradient
    def noisy(x):
        mask = tf.cast(tf.random.uniform([3]) > 0.5, tf.float64)

        def grad(dy):
            return dy * mask * 2 * x

        return x * x * mask, grad

    assert nth(noisy, X, 1) is not None
    with pytest.raises(pb.errors.SecondOrderError, match="draws random numbers"):
        nth(noisy, X, 2)


def test_random_numbers_are_the_same_in_all_orders_of_a_graph():
    @pb.custom_gradient
    def noisy(x):
        mask = tf.cast(tf.random.uniform([3]) > 0.5, tf.float64)

        def grad(dy):
            return dy * mask * 2 * x

        return x * x * mask, grad

    @tf.function
    def both(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = noisy(x)
            dx = inner.gradient(y, x)
        return y, outer.gradient(dx, x)

    for _ in range(5):
        y, ddx = both(X)
        np.testing.assert_array_equal(ddx.numpy() != 0, y.numpy() != 0)


def test_the_body_runs_once_for_a_first_derivative():
    runs = []

    @pb.custom_gradient
    def counted(x):
        runs.append(1)

        def grad(dy):
            return dy

        return x * 1, grad

    nth(counted, X, 1)
    assert len(runs) == 1


def test_unwatched_calls_keep_nothing(wrap):
    """The value is right when nobody differentiates."""
    np.testing.assert_allclose(wrap(softplus)(X), tf.math.softplus(X), rtol=1e-10)


# ── state between the runs ───────────────────────────────────────────────────────────────────────────────


class Box:
    def __init__(self, scale):
        self.scale = scale


RESIDUALS = {
    "a tensor": (lambda v: v * 1.0, lambda kept: kept),
    "a nest": (lambda v: [({"s": v * 1.0}, None)], lambda kept: kept[0][0]["s"]),
    "an object": (lambda v: Box(v * 1.0), lambda kept: kept.scale),
    "a number": (lambda v: float(v), lambda kept: kept),
    "an array": (lambda v: v.numpy(), lambda kept: kept),
    "a function": (lambda v: (lambda s: lambda: s)(v * 1.0), lambda kept: kept()),
}


@pytest.mark.parametrize("kind", RESIDUALS)
def test_a_variable_that_was_changed_since_is_refused_in_a_higher_order(kind):
    keep, get = RESIDUALS[kind]
    scale = tf.Variable(2.0, trainable=False, dtype=tf.float64)

    @pb.custom_gradient
    def f(x):
        kept = keep(scale)

        def grad(dy):
            return dy * get(kept) * 2 * x

        return scale * x * x, grad

    def twice(between):
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as inner:
                inner.watch(X)
                y = f(X)
            between()
            dx = inner.gradient(y, X)
        return dx, outer.gradient(dx, X)

    dx, ddx = twice(lambda: None)
    np.testing.assert_allclose(dx, 4 * X)
    np.testing.assert_allclose(ddx, [4.0] * 3)
    with pytest.raises(pb.errors.SecondOrderError, match="kept other values for `grad`"):
        twice(lambda: scale.assign(10.0))


def test_an_attribute_that_the_body_sets_anew_is_looked_at_too():
    scale = tf.Variable(2.0, trainable=False, dtype=tf.float64)

    class Layer:
        @pb.custom_gradient
        def call(self, x):
            self.kept = scale * 2 * x

            def grad(dy):
                return dy * self.kept

            return scale * x * x, grad

    layer = Layer()
    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as inner:
            inner.watch(X)
            y = layer.call(X)
        scale.assign(10.0)
        with pytest.raises(pb.errors.SecondOrderError) as caught:
            inner.gradient(y, X)
    said = [line.strip() for line in str(caught.value).splitlines()]
    assert said[0].endswith("run again for a higher derivative, and kept other values for `grad`")
    assert said[1:] == [
        "expected: the same values in both runs",
        "why: something that the body reads was changed after the first run, "
        "and the derivative would be that of another function",
        "fix: pass what changes as an argument, or differentiate before it is changed",
        "read: pullback explain SecondOrderError",
    ]


def test_a_first_derivative_that_is_recorded_has_the_value_of_one_that_is_not():
    """What two runs keep may differ by rounding: the value is that of the first."""
    shift = [0.0, 1e-10, 0.0, 1e-10]

    @pb.custom_gradient
    def f(x):
        kept = 2 * x + shift.pop(0)

        def grad(dy):
            return dy * kept

        return x * x, grad

    def first(watched):
        with tf.GradientTape() as outer:
            outer.watch(watched)
            with tf.GradientTape() as inner:
                inner.watch(X)
                y = f(X)
            dx = inner.gradient(y, X)
        return dx, outer.gradient(dx, X)

    dx, ddx = first([X])
    np.testing.assert_array_equal(dx, 2 * X)
    np.testing.assert_allclose(ddx, [2.0] * 3)


@pytest.mark.parametrize("how", ["assign_add", "a function", "a Keras layer"])
def test_a_variable_that_the_body_changes_is_changed_once(how):
    import keras

    steps = tf.Variable(0.0, trainable=False)
    norm = keras.layers.BatchNormalization(dtype="float64", center=False, scale=False)
    norm(X[:, None])
    counted = tf.function(lambda: steps.assign_add(1.0))

    @pb.custom_gradient
    def f(x):
        if how == "a Keras layer":
            norm(x[:, None], training=True)
        else:
            steps.assign_add(1.0) if how == "assign_add" else counted()

        def grad(dy):
            return dy * 2 * x

        return x * x, grad

    state = norm.moving_variance.value if how == "a Keras layer" else steps
    nth(f, X, 1)
    once = state.numpy()
    assert once != (1.0 if how == "a Keras layer" else 0.0)
    state.assign(tf.ones_like(state) if how == "a Keras layer" else tf.zeros_like(state))
    np.testing.assert_allclose(nth(f, X, 2), [2.0] * 3)
    np.testing.assert_array_equal(state, once)
    state.assign(tf.ones_like(state) if how == "a Keras layer" else tf.zeros_like(state))
    with tf.autodiff.ForwardAccumulator(X, X):
        f(X)
    np.testing.assert_array_equal(state, once)


@pytest.mark.parametrize("draw", ["a generator", "categorical", "a function"])
def test_every_draw_of_random_numbers_is_heard(draw):
    generator = tf.random.Generator.from_seed(1)
    function = tf.function(lambda: tf.random.uniform([3], dtype=tf.float64))
    drawn = {
        "a generator": lambda: generator.uniform([3], dtype=tf.float64),
        "categorical": lambda: tf.cast(tf.random.categorical(tf.zeros([1, 9]), 3)[0], tf.float64),
        "a function": function,
    }[draw]

    @pb.custom_gradient
    def noisy(x):
        noise = drawn()

        def grad(dy):
            return dy * noise

        return x * noise, grad

    for _ in range(2):
        assert nth(noisy, X, 1) is not None
        with pytest.raises(pb.errors.SecondOrderError, match="draws random numbers"):
            nth(noisy, X, 2)


def test_a_jacobian_that_is_differentiated_has_the_values_that_were_kept():
    """Its pullback runs in a graph: there a change is an error when it runs."""
    scale = tf.Variable(2.0, trainable=False, dtype=tf.float64)

    @pb.custom_gradient
    def f(x):
        y = scale * tf.exp(x)

        def grad(dy):
            return dy * y

        return y, grad

    def twice(between):
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as inner:
                inner.watch(X)
                y = f(X)
            between()
            total = tf.reduce_sum(inner.jacobian(y, X))
        return outer.gradient(total, X)

    np.testing.assert_allclose(twice(lambda: None), 2 * tf.exp(X))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"f \(.* kept other values for `grad`"):
        twice(lambda: scale.assign(10.0))


@pytest.mark.parametrize("where", ["tape inside", "tape outside"])
def test_a_graph_keeps_what_its_body_read(where):
    scale = tf.Variable(2.0, trainable=False, dtype=tf.float64)

    @pb.custom_gradient
    def f(x):
        kept = scale * 2 * x

        def grad(dy):
            return dy * kept

        return scale * x * x, grad

    def twice(run, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = run(x)
            scale.assign(10.0)
            dx = inner.gradient(y, x)
        return dx, outer.gradient(dx, x)

    run = tf.function(lambda x: f(x))
    found = twice(run, X) if where == "tape outside" else tf.function(lambda x: twice(f, x))(X)
    np.testing.assert_allclose(found[0], 4 * X)
    np.testing.assert_allclose(found[1], [4.0] * 3)


TABLE = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
QUEUE = tf.queue.FIFOQueue(10, [tf.float32])
KEY = tf.constant([0], tf.int64)
CHANGES = {
    "a table": (lambda: TABLE.insert(KEY, TABLE.lookup(KEY) + 1), lambda: TABLE.lookup(KEY)[0]),
    "a queue": (lambda: QUEUE.enqueue(1.0), QUEUE.size),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_body_that_changes_what_cannot_be_put_back_is_not_run_again(what):
    change, count = CHANGES[what]

    @pb.custom_gradient
    def f(x):
        change()

        def grad(dy):
            return 2 * x * dy

        return x * x, grad

    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(X)
            y = f(X)
        with outer.stop_recording():
            np.testing.assert_allclose(inner.gradient(y, X), 2 * X)  # a first derivative needs no second run
        with pytest.raises(pb.errors.SecondOrderError) as caught:
            inner.gradient(y, X)
    said = [line.strip() for line in str(caught.value).splitlines()]
    assert said[0].endswith(
        "changes a resource that cannot be put back, and a higher derivative runs it again"
    )
    assert said[1:] == [
        "expected: a body that can be run twice as if it were run once",
        "fix: do that outside of the rule",
        "read: pullback explain SecondOrderError",
    ]
    assert count() == 1
