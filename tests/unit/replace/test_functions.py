"""`with_gradient`, `surrogate`, `straight_through`: the function stays, its way back is another."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([[0.4, -1.3, 2.2], [0.1, 0.0, -0.6]])


def tripled(dy):
    return 3 * dy


# ── with_gradient ────────────────────────────────────────────────────────────────────────────────────────

GRADS = {
    "dy": lambda dy: 5 * dy,
    "dy and x": lambda dy, x: dy * x,
    "dy and the output": lambda dy, output: dy * output,
    "dy, x and the output by keyword": lambda dy, x, *, output: dy * x * output,
    "all by position": lambda dy, other: dy * other,
    "everything": lambda dy, *inputs: dy * inputs[0],
}
CLOSED = {
    "dy": lambda dy, x: 5 * dy,
    "dy and x": lambda dy, x: dy * x,
    "dy and the output": lambda dy, x: dy * np.exp(x),
    "dy, x and the output by keyword": lambda dy, x: dy * x * np.exp(x),
    "all by position": lambda dy, x: dy * x,
    "everything": lambda dy, x: dy * x,
}


def exponential(x):
    return tf.exp(x)


@pytest.mark.parametrize("name", GRADS)
def test_grad_is_handed_what_it_names(name, pull):
    f = pb.with_gradient(exponential, GRADS[name])
    dy = tf.constant(np.linspace(-1, 1, 6).reshape(2, 3), tf.float32)
    y, (dx,) = pull(lambda x: f(x), [X], [dy])
    np.testing.assert_allclose(y, tf.exp(X), rtol=1e-6)
    np.testing.assert_allclose(dx, CLOSED[name](dy.numpy(), X.numpy()), rtol=1e-5, atol=1e-6)


def test_arguments_are_chosen_by_name(pull):
    f = pb.with_gradient(lambda a, b: a * b, lambda dy, b: {"a": dy * b * 10})
    _, (da, db) = pull(lambda a, b: f(a, b=b), [X, X + 1], [tf.ones_like(X)])
    np.testing.assert_allclose(da, 10 * (X + 1), rtol=1e-6)
    assert db is None or not np.any(db)


def test_many_outputs_have_a_cotangent_each(pull):
    f = pb.with_gradient(lambda x: (2 * x, x * x), lambda dy, dz, x: dy + 100 * dz)
    _, (dx,) = pull(lambda x: f(x), [X], [tf.ones_like(X), 2 * tf.ones_like(X)])
    np.testing.assert_allclose(dx, np.full([2, 3], 201.0))


def test_a_layers_weights_keep_their_gradients(wrap):
    layer = keras.layers.Dense(2)
    layer.build([2, 3])
    f = pb.with_gradient(layer, lambda dy: tf.ones([2, 3]))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y, plain = wrap(lambda x: f(x) ** 2)(X), layer(X) ** 2
    np.testing.assert_array_equal(y, plain)
    np.testing.assert_array_equal(tape.gradient(y, X), np.ones([2, 3]))
    for weight in layer.trainable_variables:
        found, expected = tape.gradient(y, weight), tape.gradient(plain, weight)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert np.any(found != 0)


def test_the_weights_gradients_may_be_given(wrap):
    weight = tf.Variable([1.0, 2.0, 3.0])

    def grad(dy, x, variables=None):
        return dy, [7 * tf.ones_like(v) for v in variables]

    f = pb.with_gradient(lambda x: x * weight, grad)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = wrap(lambda x: f(x))(X)
    dx, dw = tape.gradient(y, [X, weight])
    np.testing.assert_array_equal(dx, np.ones([2, 3]))
    np.testing.assert_array_equal(dw, [7, 7, 7])


def test_dropout_draws_one_mask():
    keras.utils.set_random_seed(3)
    layer = keras.layers.Dropout(0.5)
    f = pb.with_gradient(layer, lambda dy, output: dy * tf.cast(output != 0, dy.dtype))
    x = tf.ones([100])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, training=True)
    np.testing.assert_array_equal(tape.gradient(y, x), tf.cast(y != 0, tf.float32))


def test_a_compiled_function_and_a_loaded_one(tmp_path, pull):
    module = tf.Module()
    module.w = tf.Variable(2.0)
    module.f = tf.function(lambda x: tf.nn.relu(x) * module.w, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for function in (module.f, module.f.get_concrete_function(), loaded.f):
        f = pb.with_gradient(function, tripled)
        y, (dx,) = pull(lambda x, f=f: f(x), [X], [tf.ones_like(X)])
        np.testing.assert_allclose(y, 2 * tf.nn.relu(X))
        np.testing.assert_allclose(dx, np.full([2, 3], 3.0))


def test_a_captured_tensor_keeps_its_gradient(wrap):
    factor = tf.constant(3.0)
    f = pb.with_gradient(lambda x: x * factor, tripled)
    with tf.GradientTape() as tape:
        tape.watch(factor)
        y = wrap(lambda x: tf.reduce_sum(f(x)))(X)
    np.testing.assert_allclose(tape.gradient(y, factor), tf.reduce_sum(X), rtol=1e-6)


def test_a_keras_model_trains_through_a_layer_with_another_gradient():
    inputs = keras.Input([3])
    frozen = pb.with_gradient(keras.activations.tanh, lambda dy: 0 * dy)
    model = keras.Model(inputs, keras.layers.Dense(1)(frozen(keras.layers.Dense(4)(inputs))))
    model.compile("sgd", "mse")
    before = [np.array(w) for w in model.get_weights()]
    model.fit(X.numpy(), np.ones([2, 1]), verbose=0)
    after = model.get_weights()
    np.testing.assert_array_equal(before[0], after[0])  # no gradient comes through
    assert np.any(before[2] != after[2])


def test_the_weights_of_a_layer_are_those_of_a_model_it_is_placed_in():
    inputs = keras.Input([3])
    layer = keras.layers.Dense(4)
    model = keras.Model(inputs, pb.with_gradient(layer, lambda dy: tf.zeros([2, 3]))(inputs))
    assert [id(w) for w in model.trainable_variables] == [id(w) for w in layer.trainable_variables]
    assert len(model.trainable_variables) == 2


def test_values_with_other_gradients_are_saved_with_a_keras_model(tmp_path):
    inputs = keras.Input([3])
    y = keras.layers.Dense(4)(inputs)
    y = pb.clip_gradient(pb.reverse_gradient(pb.scale_gradient(y, 0.5), 0.2), norm=1.0)
    y = pb.argmax_one_hot(pb.round(pb.sign(pb.heaviside(y, slope="arctan"))))
    y = pb.forbid_gradient(pb.stop_gradient(pb.finite_gradient(y), reason="for the test"))
    model = keras.Model(inputs, y)
    model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m.keras")(X), model(X))


@keras.saving.register_keras_serializable(package="tests_of_replacements")
def thrice(dy):
    return 3 * dy


def test_a_saved_model_keeps_functions_and_pairs_among_the_arguments(tmp_path):
    inputs = keras.Input((3,))
    outputs = pb.map_gradient(pb.clip_gradient(inputs, value=(-1.0, 2.0)), thrice)
    keras.Model(inputs, outputs).save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    x = tf.ones([1, 3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [[2.0, 2.0, 2.0]])


def test_exported_gradients_are_kept(tmp_path):
    module = tf.Module()
    module.w = tf.Variable(2.0)

    def f(x):
        y = pb.with_gradient(tf.exp, lambda dy, x, output: 5 * dy * output)(x) * module.w
        return pb.clip_gradient(pb.surrogate(tf.round, like=tf.tanh)(y), norm=0.3)

    module.f = tf.function(f, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        ours, theirs = module.f(X), loaded.f(X)
    np.testing.assert_allclose(tape.gradient(theirs, X), tape.gradient(ours, X), rtol=1e-6)


# ── surrogate ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_value_of_one_gradient_of_the_other(dtype, pull):
    f = pb.surrogate(tf.round, like=tf.tanh)
    x = tf.cast(X, dtype)
    y, (dx,) = pull(lambda x: f(x), [x])
    _, (expected,) = pull(tf.tanh, [x])
    np.testing.assert_array_equal(y, tf.round(x))
    np.testing.assert_array_equal(dx, expected)


def test_any_number_of_inputs_and_outputs(pull):
    f = pb.surrogate(
        lambda a, b: {"s": tf.round(a + b), "p": tf.sign(a)}, like=lambda a, b: {"s": a * b, "p": a + b}
    )
    _, found = pull(lambda a, b: f(a, b=b), [X, X + 1])
    _, expected = pull(lambda a, b: {"s": a * b, "p": a + b}, [X, X + 1])
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_variables_of_the_surrogate_are_trained(wrap):
    layer = keras.layers.Dense(3)
    layer.build([2, 3])
    f = pb.surrogate(tf.round, like=layer)
    with tf.GradientTape(persistent=True) as tape:
        y, plain = wrap(lambda x: f(x))(X), layer(X)
    for weight in layer.trainable_variables:
        np.testing.assert_allclose(tape.gradient(y, weight), tape.gradient(plain, weight), rtol=1e-6)


def test_the_intent_is_recorded():
    assert pb.surrogate(tf.round, like=tf.tanh).rule.intent == pb.Intent("like", function=tf.tanh)
    assert pb.straight_through(tf.round).rule.intent.kind == "like"
    assert pb.with_gradient(tf.exp, tripled, differs="for the test").rule.intent.reason == "for the test"
    assert pb.reverse_gradient.rule.intent.kind == "like"
    assert {f.rule.intent.kind for f in (pb.clip_gradient, pb.finite_gradient, pb.map_gradient)} == {
        "differs"
    }


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (pb.scale_gradient, (0.3,)),
        (pb.reverse_gradient, (0.3,)),
        (pb.reverse_gradient, ()),
        (pb.stop_gradient, ()),
    ],
)
def test_the_claim_can_be_verified(f, arguments, pull):
    """The gradient is that of the function which the intent names."""
    like = f.rule.intent.function
    _, (found,) = pull(lambda x: f(x, *arguments), [X])
    _, (expected,) = pull(lambda x: like(x, *arguments), [X])
    if expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


# ── straight through ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_cotangent_passes_straight_through(dtype, pull):
    f = pb.straight_through(lambda x, levels: tf.round(x * levels) / levels)
    x, dy = tf.cast(X, dtype), tf.cast(X * 2 - 1, dtype)
    y, (dx,) = pull(lambda x: f(x, levels=4.0), [x], [dy])
    np.testing.assert_array_equal(y, tf.round(x * 4) / 4)
    np.testing.assert_array_equal(dx, dy)


def test_structures_pass_straight_through(pull):
    f = pb.straight_through(lambda parts: [tf.round(p) for p in parts])
    _, (da, db) = pull(lambda a, b: f([a, b]), [X, 2 * X], [X, 3 * X])
    np.testing.assert_array_equal(da, X)
    np.testing.assert_array_equal(db, 3 * X)
