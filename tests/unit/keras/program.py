"""A program that trains, saves and loads with rules, on whichever backend Keras has.

Run by `test_backends.py`.

Each function asserts something that a gradient which is not used, or is used twice, would break.
"""

import os
import sys

import keras
import numpy as np

import pullback as pb

X = np.array([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.5], [2.0, 1.0]], "float32")
Y = np.array([[1.0], [0.0], [0.5], [-1.0]], "float32")
W = np.array([[0.5], [-0.25]], "float32")
RATE = 0.125


@keras.saving.register_keras_serializable(package="program")
@pb.custom_gradient
def half_gradient(x, w):
    """x · w, the gradient of w only half of it: what training must show."""
    xp = pb.namespace(x, w)

    def grad(dy):
        return xp.matmul(dy, xp.matrix_transpose(w)), xp.matmul(xp.matrix_transpose(x), dy) / 2

    return xp.matmul(x, w), grad


@keras.saving.register_keras_serializable(package="program")
class Dense(keras.layers.Layer):
    """A layer whose weight goes into a rule as it is."""

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], 1), name="w", initializer=keras.initializers.Constant(0.0))

    def call(self, x):
        return half_gradient(x, self.w)


@keras.saving.register_keras_serializable(package="program")
def squared(y_true, y_pred):
    return pb.namespace(y_pred).mean((y_pred - y_true) ** 2, axis=-1)


@keras.saving.register_keras_serializable(package="program")
def slope_of_three(y_true, y_pred):
    """Three times the gradient that a squared error has."""
    return 6 * (y_pred - y_true)


def fit(model, loss, steps=1):
    model.compile(optimizer=keras.optimizers.SGD(RATE), loss=loss)
    model.fit(X, Y, batch_size=4, epochs=steps, verbose=0, shuffle=False)


def expected(factor, steps=1):
    """Compute by hand what the weight is after some steps of a squared error."""
    w = W.astype("float64")
    for _ in range(steps):
        w = w - RATE * factor * 2 * X.T.astype("float64") @ (X @ w - Y) / 4
    return w


def close(a, b):
    np.testing.assert_allclose(keras.ops.convert_to_numpy(a), b, rtol=2e-5)


def a_rule_inside_a_layer_is_what_trains_it():
    model = keras.Sequential([keras.Input((2,)), Dense()])
    model.layers[0].w.assign(W)
    fit(model, "mse", 3)
    close(model.layers[0].w, expected(0.5, 3))


def a_weight_is_an_argument_like_any_other():
    w = keras.Variable(W)
    close(half_gradient(keras.ops.convert_to_tensor(X), w), X @ W)


def a_loss_has_the_gradient_it_was_given():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.layers[0].kernel.assign(W)
    fit(model, pb.loss(squared, slope_of_three, differs="three times the slope"), 2)
    close(model.layers[0].kernel, expected(3.0, 2))


def a_rule_on_a_place_in_a_model_becomes_a_layer():
    inputs = keras.Input((2,))
    middle = keras.layers.Dense(1, use_bias=False, name="inner")(inputs)
    model = keras.Model(inputs, pb.reverse_gradient(middle, 2.0))
    assert model.output_shape == (None, 1)
    model.get_layer("inner").kernel.assign(W)
    fit(model, "mse")
    close(model.get_layer("inner").kernel, expected(-2.0))


def a_step_is_trained_by_its_slope():
    inputs = keras.Input((2,))
    middle = keras.layers.Dense(1, use_bias=False, name="inner")(inputs)
    model = keras.Model(inputs, pb.heaviside(middle, slope="straight_through"))
    model.get_layer("inner").kernel.assign(W)
    fit(model, "mse")
    spikes = (X @ W >= 0).astype("float64")
    close(model.get_layer("inner").kernel, W - RATE * 2 * X.T @ (spikes - Y) / 4)


def a_model_is_saved_and_loaded_with_its_rules():
    inputs = keras.Input((2,))
    middle = pb.scale_gradient(Dense(name="inner")(inputs), 4.0)
    model = keras.Model(inputs, middle)
    model.get_layer("inner").w.assign(W)
    fit(model, pb.loss(squared, slope_of_three, differs="three times the slope"))
    path = os.path.join(sys.argv[1], "model.keras")
    model.save(path)
    again = keras.models.load_model(path)
    close(again.predict(X, verbose=0), X @ expected(0.5 * 4 * 3))
    again.get_layer("inner").w.assign(W)
    again.fit(X, Y, batch_size=4, epochs=1, verbose=0, shuffle=False)
    close(again.get_layer("inner").w, expected(0.5 * 4 * 3))


def sample_weights_reach_the_gradient():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.layers[0].kernel.assign(W)
    loss = pb.loss(squared, slope_of_three, differs="three times the slope")
    model.compile(optimizer=keras.optimizers.SGD(RATE), loss=loss)
    weights = np.array([1.0, 0.0, 2.0, 0.5], "float32")
    model.fit(X, Y, sample_weight=weights, batch_size=4, epochs=1, verbose=0, shuffle=False)
    slope = 6 * (X @ W - Y) * weights[:, None] / 4
    close(model.layers[0].kernel, W - RATE * X.T @ slope)


def one_per_batch(y_true, y_pred):
    return keras.ops.mean((y_pred - y_true) ** 2)


def every_reduction_and_weight_is_that_of_keras():
    weights = np.array([1.0, 0.0, 2.0, 0.5], "float32")
    for reduction in ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight"):
        trained = []
        for loss in (
            pb.loss(squared, lambda t, p: 2 * (p - t), reduction=reduction),
            keras.losses.MeanSquaredError(reduction=reduction),
        ):
            model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
            model.layers[0].kernel.assign(W)
            model.compile(optimizer=keras.optimizers.SGD(RATE), loss=loss)
            model.fit(X, Y[:, 0], sample_weight=weights, batch_size=4, epochs=2, verbose=0, shuffle=False)
            trained.append(keras.ops.convert_to_numpy(model.layers[0].kernel))
        close(*trained)


def a_loss_of_the_whole_batch_has_its_own_gradient_or_none():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
    model.layers[0].kernel.assign(W)
    fit(model, pb.loss(one_per_batch, lambda t, p: 2 * (p - t) / 4, reduction="none"))
    close(model.layers[0].kernel, expected(1.0))
    predictions = keras.ops.convert_to_tensor(X[:, :1])
    refused(pb.errors.OutputError, lambda: pb.loss(one_per_batch, lambda t, p: p - t)(Y, predictions))


def a_gradient_is_never_broadcast():
    for slope in (lambda t, p: keras.ops.mean(p - t), lambda t, p: (p - t)[0]):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
        refused(pb.errors.CotangentShapeError, lambda m=model, s=slope: fit(m, pb.loss(squared, s)))


def refused(error, action):
    try:
        action()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


if __name__ == "__main__":
    for promise in (
        a_rule_inside_a_layer_is_what_trains_it,
        a_weight_is_an_argument_like_any_other,
        a_loss_has_the_gradient_it_was_given,
        a_rule_on_a_place_in_a_model_becomes_a_layer,
        a_step_is_trained_by_its_slope,
        a_model_is_saved_and_loaded_with_its_rules,
        sample_weights_reach_the_gradient,
        every_reduction_and_weight_is_that_of_keras,
        a_loss_of_the_whole_batch_has_its_own_gradient_or_none,
        a_gradient_is_never_broadcast,
    ):
        promise()
        print("passed:", promise.__name__, flush=True)
