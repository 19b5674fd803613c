"""A program that trains, saves and loads with rules, on whichever backend Keras has.

Run by `test_backends.py`.

Each function asserts something that a gradient which is not used, or is used twice, would break.
"""

import copy
import io
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


def averaged(y_true, y_pred):
    return keras.ops.mean(y_pred - y_true)


def first(y_true, y_pred):
    return (y_pred - y_true)[0]


def a_gradient_is_never_broadcast():
    for slope in (averaged, first):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False)])
        refused(pb.errors.CotangentShapeError, lambda m=model, s=slope: fit(m, pb.loss(squared, s)))


# ── overridden models ────────────────────────────────────────────────────────────────────────────────────


@keras.saving.register_keras_serializable(package="program")
def tenfold(dy, x):
    return 10 * dy * keras.ops.cast(x > 0, x.dtype)


def own_slope(dy, x):
    return dy * keras.ops.cast(x > 0, x.dtype)


def sequential():
    layers = [keras.layers.Dense(3, "relu", name="first"), keras.layers.Dense(1, name="last")]
    return keras.Sequential([keras.Input((2,)), *layers], name="net")


def functional():
    inputs = keras.Input((2,))
    middle = keras.layers.Dense(3, "relu", name="first")(inputs)
    return keras.Model(inputs, keras.layers.Dense(1, name="last")(middle), name="net")


@keras.saving.register_keras_serializable(package="program")
class Subclassed(keras.Model):
    """A model that is built in its first call."""

    def __init__(self, **options):
        super().__init__(**options)
        self.first = keras.layers.Dense(3, "relu", name="first")
        self.last = keras.layers.Dense(1, name="last")

    def call(self, x):
        return self.last(self.first(x))


def subclassed():
    return Subclassed(name="net")


MODELS = (sequential, functional, subclassed)


def made(make):
    keras.utils.set_random_seed(3)
    return make()


def weights(model):
    return [keras.ops.convert_to_numpy(weight) for weight in model.weights]


def moved(make, wrap=lambda model: model, use=lambda model: None):
    """Tell by how much one step moves each weight."""
    start = made(make)
    start(X)
    model = made(make)
    seen = wrap(model)
    use(model)
    fit(seen, "mse")
    return model, seen, [after - before for before, after in zip(weights(start), weights(model))]


def tenfold_relu(model):
    return pb.override(model, {keras.ops.relu: tenfold})


def by_tenfold(steps, plain):
    for step, native, factor in zip(steps, plain, (10, 10, 1, 1)):
        np.testing.assert_allclose(step, factor * native, rtol=1e-3, atol=1e-6)


def an_overridden_model_trains_by_the_gradient_it_was_given():
    for make in MODELS:
        plain = moved(make)[2]
        assert all(np.abs(step).max() > 1e-3 for step in plain)
        model, seen, steps = moved(make, tenfold_relu)
        by_tenfold(steps, plain)
        assert isinstance(seen, type(model))
        assert seen.name == model.name == "net"
        assert seen.replaced == {"relu": 1}
        assert all(mine is theirs for mine, theirs in zip(seen.weights, model.weights, strict=True))
        np.testing.assert_allclose(seen.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-6)
        assert not model.compiled


def an_overridden_model_and_its_original_train_side_by_side():
    plain = moved(functional)[2]
    model, seen, steps = moved(functional, tenfold_relu, use=lambda model: fit(model, "mse", 0))
    by_tenfold(steps, plain)
    start = made(functional)
    model.set_weights(start.get_weights())
    model.fit(X, Y, batch_size=4, verbose=0, shuffle=False)  # not by the functions made for the other
    for after, before, step in zip(weights(model), weights(start), plain):
        np.testing.assert_allclose(after - before, step, rtol=1e-3, atol=1e-6)
    assert model.optimizer is not seen.optimizer


def an_override_of_a_compiled_model_is_compiled():
    model = made(functional)
    model.compile(keras.optimizers.SGD(RATE), "mse", metrics=["mae"])
    model.fit(X, Y, batch_size=4, verbose=0, shuffle=False)
    model.set_weights(made(functional).get_weights())
    seen = tenfold_relu(model)
    before = weights(model)
    history = seen.fit(X, Y, batch_size=4, verbose=0, shuffle=False, validation_data=(X, Y)).history
    assert list(history) == ["loss", "mae", "val_loss", "val_mae"]
    by_tenfold([after - b for after, b in zip(weights(seen), before)], moved(functional)[2])


def everything_a_layer_leaves_behind_is_left():
    """A mask, an update, a loss and a seed: an override with the right gradient changes none of them."""
    words = np.array([[1, 2, 0, 0], [3, 1, 2, 0]])

    def make():
        inputs = keras.Input((4,), dtype="int32")
        middle = keras.layers.Embedding(5, 3, mask_zero=True)(inputs)
        middle = keras.layers.Dense(3, "relu", activity_regularizer="l2")(middle)
        middle = keras.layers.BatchNormalization(momentum=0.5)(middle)
        middle = keras.layers.Dropout(0.5, seed=4)(middle)
        return keras.Model(inputs, keras.layers.Dense(1)(middle))

    found = []
    for wrap in (lambda model: model, lambda model: pb.override(model, {keras.ops.relu: own_slope})):
        model = wrap(made(make))
        keras.utils.set_random_seed(5)
        model.compile(keras.optimizers.SGD(RATE), "mse")
        targets = np.ones((2, 4, 1), "float32")
        losses = model.fit(words, targets, epochs=2, verbose=0, shuffle=False).history["loss"]
        output = model(keras.ops.convert_to_tensor(words))
        left = map(keras.ops.convert_to_numpy, [output, *model.losses])
        found.append([*weights(model), losses, *left])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def an_overridden_model_is_saved_loaded_and_copied_with_its_gradients():
    plain = moved(functional)[2]
    for make in MODELS:
        seen = moved(make, tenfold_relu)[1]
        path = os.path.join(sys.argv[1], "overridden.keras")
        seen.save(path)
        loaded = keras.models.load_model(path)
        copied = copy.deepcopy(seen)
        remade = type(seen).from_config(seen.get_config())
        for again in (loaded, copied, remade):
            assert isinstance(again, type(seen.original))
            assert again.name == "net" or make is subclassed  # whose name Keras does not keep
            if again is remade:
                again.compile(keras.optimizers.SGD(RATE), "mse")
                again(X)
            else:
                np.testing.assert_allclose(again.predict(X, verbose=0), seen.predict(X, verbose=0), rtol=1e-5)
            start = made(functional)
            again.set_weights(start.get_weights())
            again.fit(X, Y, batch_size=4, verbose=0, shuffle=False)
            by_tenfold([after - before for after, before in zip(weights(again), weights(start))], plain)


def checkpoints_and_callbacks_take_an_overridden_model():
    for make in MODELS:
        path = os.path.join(sys.argv[1], "best.weights.h5")
        seen = tenfold_relu(made(make))
        seen.compile(keras.optimizers.SGD(RATE / 10), "mse")
        save = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
        stop = keras.callbacks.EarlyStopping("loss", patience=0, min_delta=1e9)
        history = seen.fit(X, Y, epochs=5, verbose=0, callbacks=[save, stop])
        assert len(history.epoch) == 2
        plain = made(make)
        plain(X)
        plain.compile(keras.optimizers.SGD(RATE / 10), "mse")
        plain.load_weights(path)
        for mine, theirs in zip(weights(plain), weights(seen)):
            np.testing.assert_array_equal(mine, theirs)
        shown = io.StringIO()
        seen.summary(print_fn=lambda line, to=shown, **_: print(line, file=to))
        assert "first" in shown.getvalue()


def a_layer_has_another_gradient_while_a_model_trains():
    for kind in ("Dense", keras.layers.Dense):
        _, seen, steps = moved(functional, lambda model, kind=kind: pb.override(model, {kind: blocked}))
        assert seen.replaced == {"Dense": 2}
        for step, native, factor in zip(steps, moved(functional)[2], (0, 0, 1, 1)):
            np.testing.assert_allclose(step, factor * native, rtol=1e-3, atol=1e-6)


def blocked(dy, inputs):
    return keras.ops.zeros_like(inputs)


def an_overridden_model_is_a_layer_of_another():
    inner = tenfold_relu(made(functional))
    outer = keras.Sequential([keras.Input((2,)), inner, keras.layers.Dense(1, "relu")])
    assert len(outer.trainable_variables) == 6
    fit(outer, "mse")
    assert inner.replaced == {"relu": 1}
    path = os.path.join(sys.argv[1], "nested.keras")
    outer.save(path)
    again = keras.models.load_model(path)
    close(again.predict(X, verbose=0), outer.predict(X, verbose=0))
    assert again.layers[0].replaced == {"relu": 1}
    around = tenfold_relu(outer)
    fit(around, "mse")
    assert around.replaced == {"relu": 2}


def kinds_that_are_not_there_are_named():
    refused(pb.errors.OverrideError, lambda: pb.override(made(functional), {"Conv2D": tenfold})(X))
    refused(pb.errors.OverrideError, lambda: pb.override(made(functional), {keras.ops.tanh: tenfold})(X))
    refused(pb.errors.OverrideError, lambda: type(tenfold_relu(made(functional)))([], []))


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
        an_overridden_model_trains_by_the_gradient_it_was_given,
        an_overridden_model_and_its_original_train_side_by_side,
        an_override_of_a_compiled_model_is_compiled,
        everything_a_layer_leaves_behind_is_left,
        an_overridden_model_is_saved_loaded_and_copied_with_its_gradients,
        checkpoints_and_callbacks_take_an_overridden_model,
        a_layer_has_another_gradient_while_a_model_trains,
        an_overridden_model_is_a_layer_of_another,
        kinds_that_are_not_there_are_named,
    ):
        promise()
        print("passed:", promise.__name__, flush=True)
