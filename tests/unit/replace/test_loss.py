"""`loss` builds a Keras loss that trains by the gradient it was given."""

import functools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

RNG = np.random.default_rng(2)
X = RNG.normal(size=[32, 3]).astype("float32")
Y = (X @ [[1.0], [-2.0], [0.5]] + 0.3).astype("float32")


@keras.saving.register_keras_serializable(package="tests_of_losses")
def squared(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_pred - y_true), -1)


@keras.saving.register_keras_serializable(package="tests_of_losses")
def squared_gradient(y_true, y_pred):
    return 2 * (y_pred - y_true) / tf.cast(tf.shape(y_pred)[-1], y_pred.dtype)


@keras.saving.register_keras_serializable(package="tests_of_losses")
def nothing(y_true, y_pred):
    return tf.zeros_like(y_pred)


def model_of(seed=1, units=1):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input([3]), keras.layers.Dense(4, "tanh"), keras.layers.Dense(units)])


def trained(loss, model=None, y=Y, fit=None, **options):
    model = model or model_of()
    model.compile(keras.optimizers.SGD(0.05), loss=loss, **options)
    history = model.fit(X, y, epochs=2, batch_size=8, shuffle=False, verbose=0, **(fit or {}))
    return model.get_weights(), history.history["loss"]


def same(a, b):
    for found, expected in zip(a[0], b[0]):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(a[1], b[1], rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}], ids=str)
def test_it_trains_as_the_native_loss(options):
    same(trained(pb.loss(squared, squared_gradient), **options), trained("mse", **options))


def test_the_gradient_is_the_given_one():
    model = model_of()
    before = model.get_weights()
    after, history = trained(pb.loss(squared, nothing, differs="for the test"), model)
    same((after, history), (before, history))
    assert history[0] > 0


@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size"])
def test_reductions_and_sample_weights_are_those_of_keras(reduction):
    weights = RNG.uniform(0, 2, 32).astype("float32")
    fit = {"sample_weight": weights}
    ours = pb.loss(squared, squared_gradient, reduction=reduction)
    same(trained(ours, fit=fit), trained(keras.losses.MeanSquaredError(reduction=reduction), fit=fit))


def test_class_weights_are_those_of_keras():
    labels = np.eye(2, dtype="float32")[RNG.integers(0, 2, 32)]
    fit = {"class_weight": {0: 0.2, 1: 3.0}}
    ours = trained(pb.loss(squared, squared_gradient), model_of(units=2), labels, fit)
    same(ours, trained("mse", model_of(units=2), labels, fit))


def test_a_loss_per_element_is_reduced_too():
    ours = pb.loss(lambda t, p: tf.square(p - t), lambda t, p: 2 * (p - t), name="elementwise")
    same(trained(ours), trained("mse"))


def test_mixed_precision():
    keras.mixed_precision.set_dtype_policy("mixed_float16")
    try:
        found, expected = trained(pb.loss(squared, squared_gradient)), trained("mse")
    finally:
        keras.mixed_precision.set_dtype_policy("float32")
    same(found, expected)


def test_two_replicas():
    # Collective reductions of two strategies in one process disturb each other.
    reduction = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=reduction)
    with strategy.scope():
        found = trained(pb.loss(squared, squared_gradient), model_of())
    same(found, trained("mse"))


def test_it_is_saved_with_its_model(tmp_path):
    model = model_of()
    model.compile("sgd", pb.loss(squared, squared_gradient, name="ours", reduction="sum"))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert loaded.loss.name == "ours"
    assert loaded.loss.reduction == "sum"
    assert loaded.loss.rule.name == "squared"
    np.testing.assert_allclose(loaded.evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0))
    same((loaded.get_weights(), [1]), (model.get_weights(), [1]))


def test_the_config_makes_the_same_loss():
    loss = pb.loss(squared, nothing, like=squared, dtype="float64")
    again = type(loss).from_config(loss.get_config())
    assert again.dtype == "float64"
    assert again.rule.intent == loss.rule.intent
    np.testing.assert_allclose(again(Y, 2 * Y), loss(Y, 2 * Y))


def test_labels_have_no_gradient_and_the_second_order_is_derived(wrap):
    loss = pb.loss(squared, squared_gradient)
    t, p = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, -1.0]])

    @wrap
    def slopes(t, p):
        with tf.GradientTape() as outer:
            outer.watch(p)
            with tf.GradientTape() as tape:
                tape.watch([t, p])
                y = loss(t, p)
            dt, dp = tape.gradient(y, [t, p])
        assert dt is None
        return dp, outer.gradient(dp, p)

    first, second = slopes(t, p)
    np.testing.assert_allclose(first, p - t, rtol=1e-6)
    np.testing.assert_allclose(second, [[1.0, 1.0]], rtol=1e-6)


def slope_of(loss, p, wrap=lambda f: f, weights=None):
    def slope(t, p):
        with tf.GradientTape() as tape:
            tape.watch(p)
            y = loss(t, p, weights)
        return tape.gradient(y, p)

    return wrap(slope)(tf.zeros_like(p), p)


@pytest.mark.parametrize("shape", [(), (3,), (4,), (1, 3), (4, 1), (4, 2), (1, 4, 3)], ids=str)
def test_a_gradient_of_another_shape_is_refused(shape, wrap):
    def slope(t, p):
        return tf.ones(shape)

    with pytest.raises(
        pb.errors.CotangentShapeError, match=rf"squared (.|\n)*`slope` returned shape {re.escape(str(shape))}"
    ):
        slope_of(pb.loss(squared, slope), tf.ones([4, 3]), wrap)


def test_a_gradient_that_would_be_broadcast_over_a_batch_of_unknown_length_is_refused():
    def slope(t, p):
        return tf.reduce_mean(p - t, 0, keepdims=True)

    step = tf.function(
        lambda p: slope_of(pb.loss(squared, slope), p), input_signature=[tf.TensorSpec([None, 3])]
    )
    with pytest.raises(pb.errors.CotangentShapeError, match=r"\(1, 3\) for `y_pred` of shape \(\?, 3\)"):
        step(tf.ones([4, 3]))


@pytest.mark.parametrize("shape", [(1, 1), (3,), (1, 3), (4, 2), (4, 4), (4, 3, 1)], ids=str)
@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight", "none"])
def test_a_value_that_is_not_one_loss_per_example_is_refused(shape, reduction, wrap):
    def value(t, p):
        return tf.ones(shape) * p[0, 0]

    with pytest.raises(
        pb.errors.OutputError, match=rf"`value` returned shape {re.escape(str(shape))}(.|\n)*\(4,\)"
    ):
        slope_of(pb.loss(value, squared_gradient, reduction=reduction), tf.ones([4, 3]), wrap)


def whole(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_pred - y_true))


def whole_gradient(y_true, y_pred):
    return 2 * (y_pred - y_true) / tf.cast(tf.size(y_pred), y_pred.dtype)


@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "mean", "mean_with_sample_weight"])
def test_one_loss_for_a_whole_batch_is_refused_by_a_reduction_over_examples(reduction):
    with pytest.raises(pb.errors.OutputError, match=rf"`whole` returned(.|\n)*reduction='{reduction}'"):
        pb.loss(whole, squared_gradient, reduction=reduction)(X, X)


@pytest.mark.parametrize("reduction", [None, "none"])
def test_one_loss_for_a_whole_batch_trains_by_its_own_gradient(reduction):
    same(trained(pb.loss(whole, whole_gradient, reduction=reduction)), trained("mse"))


def test_weights_for_one_loss_of_a_whole_batch_are_refused():
    loss = pb.loss(whole, whole_gradient, reduction="none")
    with pytest.raises(pb.errors.OptionError, match="sample weights"):
        loss(Y, 2 * Y, np.ones(32, "float32"))


def test_an_axis_may_be_kept_with_length_one():
    def kept(t, p):
        return squared(t, p)[:, None]

    fit = {"sample_weight": RNG.uniform(0, 2, 32).astype("float32")}
    same(trained(pb.loss(kept, squared_gradient), fit=fit), trained("mse", fit=fit))


@pytest.mark.parametrize("reduction", [None, "none"])
def test_losses_that_nobody_reduces_have_one_cotangent_each(reduction):
    p = tf.constant([[1.0, 2.0], [3.0, -1.0]])
    slope = slope_of(pb.loss(squared, squared_gradient, reduction=reduction), p, weights=[1.0, 3.0])
    np.testing.assert_allclose(slope, p * [[1.0], [3.0]])


def test_labels_without_the_last_axis_are_compared_one_by_one():
    assert Y.shape == (32, 1)
    same(trained(pb.loss(squared, squared_gradient), y=Y[:, 0]), trained("mse", y=Y[:, 0]))


class Squared:
    def __call__(self, y_true, y_pred):
        return squared(y_true, y_pred)


class Slope:
    def __call__(self, y_true, y_pred):
        return squared_gradient(y_true, y_pred)


def scaled(scale, y_true, y_pred):
    return scale * squared(y_true, y_pred)


VALUES = {
    "lambda_": lambda t, p: squared(t, p),
    "scaled": functools.partial(scaled, 1.0),
    "squared": functools.partial(functools.partial(squared)),
    "Squared": Squared(),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    "gradient",
    [lambda t, p: squared_gradient(t, p), functools.partial(squared_gradient), Slope()],
    ids=["lambda", "partial", "object"],
)
def test_whatever_can_be_called_is_a_value_and_a_gradient(name, gradient):
    loss = pb.loss(VALUES[name], gradient)
    assert loss.name == name
    same(trained(loss), trained("mse"))


@pytest.mark.parametrize("broken", [lambda p: p, lambda t, p, scale: p])
def test_a_function_that_cannot_take_labels_and_predictions_is_refused(broken):
    with pytest.raises(pb.errors.DefinitionError, match="labels and the predictions"):
        pb.loss(broken, squared_gradient)
    with pytest.raises(pb.errors.DefinitionError, match="labels and the predictions"):
        pb.loss(squared, broken)


@pytest.mark.parametrize(
    "slope", [None, "steep", tf.ones([4, 3], tf.complex64)], ids=["None", "str", "complex"]
)
def test_a_gradient_that_is_no_real_number_is_refused(slope):
    with pytest.raises(pb.errors.CotangentDtypeError, match="y_pred"):
        slope_of(pb.loss(squared, lambda t, p: slope), tf.ones([4, 3]))


def test_what_is_no_function_is_refused():
    with pytest.raises(pb.errors.DefinitionError, match="gradient="):
        pb.loss(squared, 3)


@pytest.mark.parametrize(
    "reduction", [None, "none", "sum", "mean", "sum_over_batch_size", "mean_with_sample_weight"]
)
@pytest.mark.parametrize("given", [squared_gradient, nothing], ids=["right", "wrong"])
def test_a_loss_is_judged_by_its_gradient_and_not_by_its_reduction(reduction, given):
    loss = pb.loss(squared, given, reduction=reduction)
    labels, predictions = tf.constant(Y[:4]), tf.constant(X[:4, :1])
    report = pb.check(loss, labels, predictions, seed=1, order=1, own_points=False, xla=False, export=False)
    assert report.verdict == ("wrong" if given is nothing else "right")
