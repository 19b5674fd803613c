"""The same numbers wherever a rule is called: graphs, loops, jacobians, sparse cotangents, dtypes."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([[0.3, -0.7, 1.1], [2.0, 0.5, -1.5]])


@pb.custom_gradient
def scaled(x):
    """Ten times the true gradient, so that a bypassed rule shows."""
    s, c = tf.sin(x), tf.cos(x)

    def grad(dy):
        return 10 * dy * c

    return s, grad


def true_scaled(x):
    return 10 * tf.cos(x)


# ── tf.function ──────────────────────────────────────────────────────────────────────────────────────────


MAKERS = [
    *("custom_gradient", "elementwise", "external"),
    *("override", "straight_through", "surrogate", "with_gradient"),
]


@pytest.mark.parametrize("name", MAKERS)
def test_autograph_does_not_convert_who_makes_a_rule(name):
    assert hasattr(getattr(pb, name), "autograph_info__")  # as `do_not_convert` leaves a function


def test_a_condition_of_a_tensor_works_in_a_rule_that_is_made_in_a_function():
    @tf.function
    def run(x):
        def slope(dy, x):
            if tf.reduce_sum(x) > 0:
                return 2 * dy
            return 3 * dy

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = pb.with_gradient(tf.sin, slope)(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(tf.constant([1.0])), [2.0])
    np.testing.assert_allclose(run(tf.constant([-1.0])), [3.0])


def test_retracing_for_new_shapes_and_dtypes():
    traces = []

    @tf.function
    def run(x):
        traces.append(x.shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        return tape.gradient(y, x)

    for x in (X, X[0], X[:, :2], tf.cast(X, tf.float64), X):
        np.testing.assert_allclose(run(x), true_scaled(x), rtol=1e-4)
    assert len(traces) == 4


def test_static_shapes_are_kept():
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        dx = tape.gradient(y, x)
        shapes.extend([y.shape.as_list(), dx.shape.as_list()])
        return dx

    run(X)
    assert shapes == [[None, 3], [None, 3]]


def test_unknown_rank(wrap):
    run = tf.function(lambda x: scaled(x), input_signature=[tf.TensorSpec(None)])
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = run(X)
    np.testing.assert_allclose(tape.gradient(y, X), true_scaled(X), rtol=1e-4)


def test_a_wrong_shape_is_refused_where_only_the_run_knows_it():
    @pb.custom_gradient
    def f(x, w):
        def grad(dy):
            return dy, tf.concat([w, w], 0)

        return x + 0 * tf.reduce_sum(w), grad

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    def run(x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = f(x, w)
        return tape.gradient(y, w)

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"f .*another shape for argument `w`"):
        run(X[0], X[0])


def test_a_rule_may_be_an_argument_of_a_function():
    @tf.function
    def apply(f, x):
        return f(x)

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = apply(scaled, X)
    np.testing.assert_allclose(tape.gradient(y, X), true_scaled(X), rtol=1e-4)


def test_a_rule_without_a_module():
    space = {"tf": tf, "pb": pb}
    exec("f = pb.custom_gradient(lambda x: (x * 2, lambda dy: 7 * dy))", space)
    space["f"].rule.body.__module__ = None
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.function(lambda x: space["f"](x))(X)
    np.testing.assert_allclose(tape.gradient(y, X), 7 * tf.ones_like(X))


# ── AutoGraph ────────────────────────────────────────────────────────────────────────────────────────────


@pb.custom_gradient
def branching(x):
    if tf.reduce_sum(x) > 0:
        y = 2 * x
    else:
        y = 3 * x

    def grad(dy):
        total = tf.zeros_like(dy)
        for _ in tf.range(3):
            total += dy
        if tf.reduce_sum(x) > 0:
            total *= 100.0
        return total

    return y, grad


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_tensor_if_and_for_in_body_and_grad(sign, pull):
    x = sign * tf.constant([1.0, 2.0])
    y, (dx,) = pull(branching, [x], [tf.ones(2)])
    np.testing.assert_allclose(y, (2 if sign > 0 else 3) * x)
    np.testing.assert_allclose(dx, [300.0 if sign > 0 else 3.0] * 2)


def test_autograph_works_where_its_surroundings_switched_it_off():
    x = tf.constant([1.0, 2.0])

    @tf.function(autograph=False)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = branching(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(x), [300.0, 300.0])


def outer_grad(x, dy):
    if tf.reduce_sum(x) > 0:
        return 5 * dy
    return 7 * dy


def test_a_grad_defined_outside_the_body_is_converted_too():
    import functools

    @pb.custom_gradient
    def f(x):
        return x * 1.0, functools.partial(outer_grad, x)

    @tf.function
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(tf.constant([1.0])), [5.0])
    np.testing.assert_allclose(run(tf.constant([-1.0])), [7.0])


# ── tapes ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pfor", [True, False], ids=["pfor", "while"])
def test_jacobian_and_batch_jacobian(pfor, wrap):
    @wrap
    def run(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = scaled(x)
        return (
            tape.jacobian(y, x, experimental_use_pfor=pfor),
            tape.batch_jacobian(y, x, experimental_use_pfor=pfor),
        )

    full, batched = run(X)
    expected = np.zeros([2, 3, 2, 3])
    for i in range(2):
        for j in range(3):
            expected[i, j, i, j] = true_scaled(X)[i, j]
    np.testing.assert_allclose(full, expected, rtol=1e-4)
    np.testing.assert_allclose(
        batched, [[[expected[i, j, i, k] for k in range(3)] for j in range(3)] for i in range(2)], rtol=1e-4
    )


def test_hessian_by_a_jacobian_of_a_gradient(wrap):
    @pb.custom_gradient
    def quartic(x):
        sq = x * x

        def grad(dy):
            return 4 * dy * sq * x

        return sq * sq, grad

    x = tf.constant([0.5, -1.0])

    @wrap
    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(quartic(x))
            dx = inner.gradient(y, x)
        return outer.jacobian(dx, x)

    np.testing.assert_allclose(run(x), np.diag(12 * np.square(x)), rtol=1e-5)


def test_a_persistent_tape_may_be_asked_twice(wrap):
    @wrap
    def run(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = scaled(x)
            z = y * y
        return tape.gradient(y, x), tape.gradient(z, x)

    dy, dz = run(X)
    np.testing.assert_allclose(dy, true_scaled(X), rtol=1e-4)
    np.testing.assert_allclose(dz, true_scaled(X) * 2 * tf.sin(X), rtol=1e-4)


def test_a_gradient_taken_inside_its_own_persistent_tape(wrap):
    @wrap
    def run(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = scaled(x)
            dx = tape.gradient(y, x)
        return dx, tape.gradient(dx, x)

    dx, ddx = run(X)
    np.testing.assert_allclose(dx, true_scaled(X), rtol=1e-4)
    np.testing.assert_allclose(ddx, -10 * tf.sin(X), rtol=1e-3)


# ── control flow of TensorFlow ───────────────────────────────────────────────────────────────────────────


def test_inside_a_while_loop(wrap):
    @wrap
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, scaled(y)), [0, x])[1]
        return tape.gradient(y, x)

    s1, s2 = tf.sin(X), tf.sin(tf.sin(X))
    np.testing.assert_allclose(run(X), 1000 * tf.cos(X) * tf.cos(s1) * tf.cos(s2), rtol=1e-3)


def test_inside_a_while_loop_with_the_tape_outside():
    @tf.function
    def loop(x):
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, scaled(y)), [0, x])[1]

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = loop(X)
    s1, s2 = tf.sin(X), tf.sin(tf.sin(X))
    np.testing.assert_allclose(tape.gradient(y, X), 1000 * tf.cos(X) * tf.cos(s1) * tf.cos(s2), rtol=1e-3)


@pytest.mark.parametrize("mapper", [tf.map_fn, tf.vectorized_map], ids=["map_fn", "vectorized_map"])
def test_inside_a_map(mapper, wrap):
    @wrap
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = mapper(scaled, x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(X), true_scaled(X), rtol=1e-3)


def test_inside_a_vectorized_map_of_a_vectorized_map(wrap):
    @wrap
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.vectorized_map(lambda row: tf.vectorized_map(scaled, row), x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(X), true_scaled(X), rtol=1e-3)


def test_order_one_is_kept_by_a_vectorized_map():
    @pb.custom_gradient(order=1)
    def first_only(x):
        return x * x, lambda dy: 2 * x * dy

    @tf.function
    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.vectorized_map(first_only, x)
            dx = inner.gradient(y, x)
        return outer.gradient(dx, x)

    with pytest.raises(
        (pb.errors.SecondOrderError, tf.errors.InvalidArgumentError), match="second derivative"
    ):
        run(X)


def test_inside_a_cond(wrap):
    @wrap
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: scaled(x), lambda: x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(run(X), true_scaled(X), rtol=1e-3)
    np.testing.assert_allclose(run(-tf.abs(X)), tf.ones_like(X))


def test_a_function_in_a_function():
    inner = tf.function(lambda x: scaled(x))
    outer = tf.function(lambda x: 2 * inner(x))
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = outer(X)
    np.testing.assert_allclose(tape.gradient(y, X), 2 * true_scaled(X), rtol=1e-4)


def test_operations_of_every_kind_may_stand_in_a_body(pull):
    @pb.custom_gradient
    def shuffled(x):
        y = tf.reshape(tf.transpose(x), [-1])

        def grad(dy):
            return 5 * tf.transpose(tf.reshape(dy, tf.reverse(tf.shape(x), [0])))

        return tf.concat([y, y[:1]], 0)[:-1], grad

    _, (dx,) = pull(shuffled, [X], [tf.range(6.0)])
    np.testing.assert_allclose(dx, 5 * np.arange(6.0).reshape(3, 2).T)


# ── cotangents ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_gather_behind_the_rule_sends_a_dense_cotangent(pull):
    kinds = []

    @pb.custom_gradient
    def table(x):
        def grad(dy):
            kinds.append(isinstance(dy, tf.Tensor))
            return 3 * dy

        return 3 * x, grad

    _, (dx,) = pull(lambda x: tf.gather(table(x), [1, 1]), [X], [tf.ones([2, 3])])
    np.testing.assert_allclose(dx, [[0.0] * 3, [6.0] * 3])
    assert all(kinds)


def test_a_grad_may_return_indexed_slices(wrap):
    table = tf.Variable(tf.ones([4, 2]))

    @pb.custom_gradient
    def lookup(table, index):
        shape = tf.shape(table)

        def grad(dy):
            return tf.IndexedSlices(5 * dy, index, shape), None

        return tf.gather(table, index), grad

    @wrap
    def run():
        with tf.GradientTape() as tape:
            y = lookup(table, tf.constant([2, 2]))
        return tf.convert_to_tensor(tape.gradient(y, table))

    np.testing.assert_allclose(run(), [[0, 0], [0, 0], [10, 10], [0, 0]])


# ── dtypes ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64], ids=lambda d: d.name)
def test_floating_dtypes(dtype, pull):
    x = tf.cast(X, dtype)
    y, (dx,) = pull(lambda x: scaled(x), [x], [tf.ones_like(x)])
    assert (y.dtype, dx.dtype) == (dtype, dtype)
    tolerance = {"float16": 3e-2, "bfloat16": 8e-2}.get(dtype.name, 1e-4)
    np.testing.assert_allclose(tf.cast(dx, tf.float64), true_scaled(tf.cast(x, tf.float64)), rtol=tolerance)


def test_a_cotangent_of_another_floating_dtype_is_cast(pull):
    @pb.custom_gradient
    def wide(x):
        x64 = tf.cast(x, tf.float64)

        def grad(dy):
            return tf.cast(dy, tf.float64) * 2 * x64

        return tf.cast(x64 * x64, tf.float32), grad

    _, (dx,) = pull(wide, [X], [tf.ones_like(X)])
    assert dx.dtype == tf.float32
    np.testing.assert_allclose(dx, 2 * X, rtol=1e-6)


@pytest.mark.parametrize("dtype", [tf.complex64, tf.complex128], ids=lambda d: d.name)
def test_complex_dtypes(dtype, pull):
    z = tf.cast(tf.constant([1 + 2j, -0.5j]), dtype)

    @pb.custom_gradient
    def square(z):
        def grad(dy):
            return dy * tf.math.conj(2 * z)

        return z * z, grad

    dy = tf.cast(tf.constant([1j, 2 - 1j]), dtype)
    _, (dz,) = pull(square, [z], [dy])
    np.testing.assert_allclose(dz, dy * tf.math.conj(2 * z), rtol=1e-5)


def test_a_real_cotangent_for_a_complex_input_is_cast():
    z = tf.constant([1 + 2j])

    @pb.custom_gradient
    def f(z):
        def grad(dy):
            return tf.math.real(dy)

        return z * 1, grad

    with tf.GradientTape() as tape:
        tape.watch(z)
        y = f(z)
    assert tape.gradient(y, z).dtype == z.dtype
