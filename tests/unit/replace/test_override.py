"""`override` replaces the gradients inside a function or a model, and leaves the original alone."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([[0.4, -1.3, 2.2], [0.1, -0.2, -0.6]])


def guided(dy, x):
    return tf.where((x > 0) & (dy > 0), dy, tf.zeros_like(dy))


def deconvnet(dy):
    return tf.nn.relu(dy)


def leaky(dy, x):
    return tf.where(x > 0, dy, 0.1 * dy)


def hundredfold(dy):
    return 100 * dy


def net(x):
    return tf.nn.relu(x) * tf.constant([1.0, -2.0, 3.0])


RULES = {
    guided: lambda dy, x: np.where((x > 0) & (dy > 0), dy, 0),
    deconvnet: lambda dy, x: np.maximum(dy, 0),
    leaky: lambda dy, x: np.where(x > 0, dy, 0.1 * dy),
}


def slope(f, x=X):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_gradient_is_the_closed_form(rule, pull):
    f = pb.override(net, {tf.nn.relu: rule})
    dy = tf.constant([[1.0, 2.0, -1.0], [-1.0, 1.0, 1.0]])
    y, (dx,) = pull(lambda x: f(x), [X], [dy])
    np.testing.assert_allclose(y, net(X))
    np.testing.assert_allclose(dx, RULES[rule](dy * [1.0, -2.0, 3.0], X.numpy()), rtol=1e-6)
    np.testing.assert_allclose(slope(net), np.where(X > 0, [1.0, -2.0, 3.0], 0))


@pytest.mark.parametrize(
    "kind", [tf.nn.relu, "Relu", tf.raw_ops.Relu, keras.ops.relu, keras.activations.relu]
)
def test_kinds_are_named_in_many_ways(kind):
    np.testing.assert_allclose(
        slope(pb.override(net, {kind: hundredfold})), 100 * tf.ones([2, 1]) * [1.0, -2.0, 3.0]
    )


def test_a_tape_inside_the_function_sees_the_override(wrap):
    f = wrap(lambda x: slope(tf.nn.relu, x))
    np.testing.assert_allclose(pb.override(f, {tf.nn.relu: hundredfold})(X), np.full([2, 3], 100.0))
    np.testing.assert_allclose(f(X), tf.cast(X > 0, tf.float32))


def test_places_are_counted():
    f = pb.override(
        lambda x: tf.nn.relu(tf.nn.relu(x) - tf.tanh(x)), {tf.nn.relu: guided, tf.tanh: hundredfold}
    )
    f(X)
    assert f.replaced == {"relu": 2, "tanh": 1}


def test_operations_with_many_inputs_and_outputs(pull):
    def halves(x):
        a, b = tf.split(x, [1, 2], 1)
        return tf.matmul(a, b, transpose_a=True)

    def product(dy, a, b):
        return 10 * tf.matmul(b, dy, transpose_b=True), None

    f = pb.override(halves, {tf.matmul: product})
    _, (dx,) = pull(lambda x: f(x), [X], [tf.ones([1, 2])])
    np.testing.assert_allclose(dx[:, 0], 10 * tf.reduce_sum(X[:, 1:], 1), rtol=1e-6)
    np.testing.assert_array_equal(dx[:, 1:], np.zeros([2, 2]))


def test_a_second_derivative_goes_through_the_given_gradient(wrap):
    f = pb.override(lambda x: tf.exp(x), {tf.exp: lambda dy, output: 2 * dy * output})
    with tf.GradientTape() as tape:
        tape.watch(X)
        g = slope(wrap(f))
    np.testing.assert_allclose(g, 2 * tf.exp(X), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(g, X), 4 * tf.exp(X), rtol=1e-6)


# ── functions inside functions, loaded models ────────────────────────────────────────────────────────────


def test_a_function_that_others_share_is_not_changed(pull):
    shared = tf.function(lambda x: tf.nn.relu(x) * 2)
    plain = slope(shared)
    f = pb.override(lambda x: shared(x) + tf.nn.relu(x), {tf.nn.relu: hundredfold})
    _, (dx,) = pull(lambda x: f(x), [X], [tf.ones_like(X)])
    np.testing.assert_allclose(dx, np.full([2, 3], 300.0))
    assert f.replaced == {"relu": 2}
    np.testing.assert_array_equal(slope(shared), plain)


def test_a_loaded_function_and_its_variables(tmp_path, pull):
    module = tf.Module()
    module.w = tf.Variable([1.0, -2.0, 3.0])
    module.f = tf.function(lambda x: tf.nn.relu(x) * module.w, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    f = pb.override(loaded.f, {tf.nn.relu: hundredfold})
    y, (dx,) = pull(lambda x: f(x), [X], [tf.ones_like(X)])
    np.testing.assert_allclose(y, net(X))
    np.testing.assert_allclose(dx, 100 * tf.ones([2, 1]) * loaded.w)
    with tf.GradientTape() as tape:
        y = f(X)
    np.testing.assert_allclose(tape.gradient(y, loaded.w), tf.reduce_sum(tf.nn.relu(X), 0), rtol=1e-6)


def test_a_custom_gradient_in_a_traced_function_is_refused():
    inner = tf.function(lambda x: tf.nn.silu(tf.nn.relu(x)))
    f = pb.override(lambda x: inner(x), {tf.nn.relu: hundredfold})
    with pytest.raises(pb.errors.OverrideError, match="custom gradient inside"):
        f(X)


def test_a_custom_gradient_in_the_function_itself_stays():
    f = pb.override(lambda x: tf.nn.silu(tf.nn.relu(x)), {tf.nn.relu: hundredfold})
    np.testing.assert_allclose(slope(f), 100 * slope(tf.nn.silu, tf.nn.relu(X)), rtol=1e-5)


def test_a_branch_and_a_loop_inside():
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = tf.nn.relu(x)
        else:
            y = x
        return y

    g = pb.override(f, {tf.nn.relu: hundredfold})
    assert float(tf.reduce_sum(X)) > 0
    np.testing.assert_allclose(slope(g), np.full([2, 3], 100.0))
    np.testing.assert_allclose(slope(g, -X), np.ones([2, 3]))


# ── models and layers ────────────────────────────────────────────────────────────────────────────────────


def model_of(*layers):
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input([3]), *layers])


def test_a_model_has_the_gradients_by_hand():
    model = model_of(keras.layers.Dense(5, activation="relu"), keras.layers.Dense(1))
    f = pb.override(model, {tf.nn.relu: guided})
    a, b, c, _ = (tf.convert_to_tensor(w) for w in model.weights)
    before = X @ a + b
    dy = tf.ones([2, 1]) @ tf.transpose(c)
    np.testing.assert_allclose(f(X), model(X), rtol=1e-6)
    np.testing.assert_allclose(slope(f), guided(dy, before) @ tf.transpose(a), rtol=1e-5, atol=1e-6)
    with tf.GradientTape() as tape:
        y = f(X)
    dd = tape.gradient(y, model.trainable_variables)[-1]
    np.testing.assert_allclose(dd, [2.0])


@pytest.mark.parametrize("kind", ["Dense", keras.layers.Dense])
def test_a_layer_has_another_gradient_and_trains_as_before(kind, wrap):
    model = model_of(keras.layers.Dense(3, use_bias=False), keras.layers.Activation("tanh"))
    f = pb.override(model, {kind: lambda dy: 7 * dy})
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y, plain = wrap(lambda x: f(x))(X), model(X)
    np.testing.assert_allclose(tape.gradient(y, X), 7 * (1 - plain**2), rtol=1e-5)
    weight = model.trainable_variables[0]
    np.testing.assert_allclose(tape.gradient(y, weight), tape.gradient(plain, weight), rtol=1e-5)
    assert f.replaced == {"Dense": 1}


def test_a_saved_model_of_keras(tmp_path):
    model = model_of(keras.layers.Dense(4, activation="relu"))
    model.save(tmp_path / "m.keras")
    f = pb.override(keras.models.load_model(tmp_path / "m.keras"), {tf.nn.relu: hundredfold})
    expected = 100 * tf.ones([2, 4]) @ tf.transpose(model.weights[0])
    np.testing.assert_allclose(slope(f), expected, rtol=1e-5)


# ── the context ──────────────────────────────────────────────────────────────────────────────────────────


def test_in_a_context(wrap):
    def run(x):
        with pb.override({tf.nn.relu: hundredfold}):
            inside = slope(net, x)
        return inside, slope(net, x)

    inside, after = wrap(run)(X)
    np.testing.assert_allclose(inside, 100 * tf.ones([2, 1]) * [1.0, -2.0, 3.0])
    np.testing.assert_allclose(after, np.where(X > 0, [1.0, -2.0, 3.0], 0))


def test_a_context_reaches_a_model_and_tells_the_places():
    model = model_of(keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2))
    with pb.override({"Dense": lambda dy, *_: None, tf.nn.relu: guided}) as found:
        assert slope(model) is None
    assert found.replaced == {"Dense": 2, "relu": 1}
    assert slope(model) is not None


def doubled(dy, output):
    return 2 * dy * output


def test_a_context_takes_higher_orders():
    with pb.override({tf.exp: doubled}), tf.GradientTape() as tape:
        tape.watch(X)
        g = slope(tf.exp)
    np.testing.assert_allclose(tape.gradient(g, X), 4 * tf.exp(X), rtol=1e-6)


def test_forward_mode_is_derived_for_a_function_and_refused_in_a_context():
    f = pb.override(lambda x: tf.exp(x), {tf.exp: doubled})
    with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
        y = f(X)
    np.testing.assert_allclose(accumulator.jvp(y), 2 * tf.exp(X), rtol=1e-6)
    accumulator = tf.autodiff.ForwardAccumulator(X, tf.ones_like(X))
    with pytest.raises(pb.errors.ForwardModeError), accumulator, pb.override({tf.exp: doubled}):
        tf.exp(X)


def pushed_in_a_graph(f, x=X):
    @tf.function
    def push():
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    return push()


def test_forward_mode_inside_a_graph_is_that_outside_of_it():
    f = pb.override(net, {tf.nn.relu: leaky})
    expected = np.where(X > 0, 1.0, 0.1) * [1.0, -2.0, 3.0]
    np.testing.assert_allclose(pushed_in_a_graph(f), expected, rtol=1e-6)
    weights = tf.Variable(X)
    read = pb.override(lambda: tf.nn.relu(weights), {tf.nn.relu: leaky})
    pushed = pushed_in_a_graph(lambda variable: read(), weights)
    np.testing.assert_allclose(pushed, np.where(X > 0, 1.0, 0.1), rtol=1e-6)


def test_forward_mode_inside_a_graph_asks_whether_a_gradient_is_linear():
    f = pb.override(net, {tf.nn.relu: deconvnet})
    with pytest.raises(pb.errors.ForwardModeError, match="not linear"):
        pushed_in_a_graph(f)
    assert slope(tf.function(f)).shape == X.shape  # and reverse mode asks nothing, before and after


def test_forward_mode_inside_a_graph_is_refused_for_a_function_that_was_traced_before():
    f = pb.override(tf.function(net).get_concrete_function(X), {tf.nn.relu: leaky})
    with pytest.raises(pb.errors.ForwardModeError, match="traced before"):
        pushed_in_a_graph(f)
    np.testing.assert_allclose(slope(tf.function(f)), np.where(X > 0, 1.0, 0.1) * [1.0, -2.0, 3.0], rtol=1e-6)


def test_forward_mode_is_refused_for_a_gradient_that_is_not_linear():
    f = pb.override(net, {tf.nn.relu: deconvnet})
    with pytest.raises(pb.errors.ForwardModeError), tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)):
        f(X)


def test_a_function_called_in_a_context_is_refused_and_stays_clean():
    shared = tf.function(net)
    refused = pytest.raises(pb.errors.OverrideError, match=r"a tf\.function was called")
    with refused, pb.override({tf.nn.relu: hundredfold}):
        shared(X)
    np.testing.assert_allclose(slope(shared), np.where(X > 0, [1.0, -2.0, 3.0], 0))


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────


def test_what_matched_nothing_is_an_error_that_lists_what_is_there():
    with pytest.raises(pb.errors.OverrideError, match=r"'elu'(.|\n)*Const, Mul, Relu"):
        pb.override(net, {tf.nn.elu: guided})(X)
    model = model_of(keras.layers.Dense(2))
    with pytest.raises(pb.errors.OverrideError, match=r"'Conv2D'(.|\n)*Dense"):
        pb.override(model, {"Conv2D": guided})(X)
    with pytest.raises(pb.errors.OverrideError, match="'elu'"), pb.override({tf.nn.elu: guided}):
        net(X)


@pytest.mark.parametrize(
    "kind", [tf.nn.gelu, 3, tf.Tensor, lambda x: x], ids=["a composition", "a number", "a class", "a lambda"]
)
def test_what_is_no_operation_is_refused(kind):
    with pytest.raises(pb.errors.OverrideError, match="is no operation"):
        pb.override(net, {kind: guided})(X)


@pytest.mark.parametrize(
    "arguments",
    [(net,), (net, {}), (net, [guided]), ({},), (3, {"Relu": guided})],
    ids=["alone", "empty", "a list", "no kinds", "a number"],
)
def test_what_is_no_override_is_refused(arguments):
    with pytest.raises(pb.errors.OverrideError):
        pb.override(*arguments)


def test_a_gradient_with_a_wrong_count_is_refused():
    f = pb.override(lambda x: tf.matmul(x, x, transpose_b=True), {tf.matmul: lambda dy: dy})
    with pytest.raises(pb.errors.CotangentCountError, match="MatMul"):
        slope(f)
