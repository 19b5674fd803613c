"""Rules in Keras 3 on TensorFlow: layers, losses, functional models, mixed precision, `.keras` files."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(16, 2)
Y = (X @ np.array([[1.0], [-2.0]], np.float32)) + 0.5


@keras.saving.register_keras_serializable(package="tests")
@pb.custom_gradient
def leaky(x):
    def grad(dy):
        return tf.where(x > 0, dy, 0.1 * dy)

    return tf.where(x > 0, x, 0.1 * x), grad


@keras.saving.register_keras_serializable(package="tests")
@pb.custom_gradient
def squared(y_true, y_pred):
    error = y_pred - y_true

    def grad(dy):
        return None, 2 * error * dy[:, None] / tf.cast(tf.shape(error)[-1], error.dtype)

    return tf.reduce_mean(error**2, -1), grad


@keras.saving.register_keras_serializable(package="tests")
@pb.custom_gradient(differs="for the test")
def frozen_loss(y_true, y_pred):
    def grad(dy):
        return None, tf.zeros_like(y_pred)

    return tf.reduce_mean((y_pred - y_true) ** 2, -1), grad


@keras.saving.register_keras_serializable(package="tests")
class Leaky(keras.layers.Layer):
    def call(self, x):
        return leaky(x)


def model_of(middle, seed=1):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input([2])
    hidden = keras.layers.Dense(8)(inputs)
    return keras.Model(inputs, keras.layers.Dense(1)(middle(hidden)))


def trained(model, loss, **options):
    model.compile(keras.optimizers.SGD(0.05), loss=loss, **options)
    model.fit(X, Y, epochs=3, batch_size=8, shuffle=False, verbose=0)
    return model.get_weights()


def same(a, b, rtol=1e-4):
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}], ids=str)
def test_in_a_layer_and_as_a_loss_it_trains_like_the_native_ones(options):
    native = trained(model_of(keras.layers.LeakyReLU(0.1)), "mse", **options)
    same(trained(model_of(Leaky()), squared, **options), native)


def test_the_gradient_of_the_loss_is_the_rules_own():
    model = model_of(Leaky())
    before = model.get_weights()
    same(trained(model, frozen_loss), before)


def test_a_functional_model_takes_a_rule_on_its_symbolic_tensors():
    model = model_of(leaky)
    same(trained(model, "mse"), trained(model_of(Leaky()), "mse"))
    assert model.layers[2].name.startswith("rule_layer")


def test_symbolic_tensors_by_keyword_and_with_statics():
    @pb.custom_gradient
    def mix(x, *, other, factor=2.0):
        def grad(dy):
            return {"x": dy, "other": factor * dy}

        return x + factor * other, grad

    a, b = keras.Input([2]), keras.Input([2])
    model = keras.Model([a, b], mix(a, other=b, factor=3.0))
    np.testing.assert_allclose(model([X, X]), 4 * X, rtol=1e-6)


def test_saved_and_loaded_models_keep_the_rule(tmp_path):
    for k, middle in enumerate([leaky, Leaky()]):
        model = model_of(middle)
        trained(model, squared)
        path = tmp_path / f"model{k}.keras"
        model.save(path)
        loaded = keras.saving.load_model(path)
        np.testing.assert_allclose(loaded(X), model(X), rtol=1e-6)
        loaded.fit(X, Y, epochs=1, batch_size=8, shuffle=False, verbose=0)
        model.fit(X, Y, epochs=1, batch_size=8, shuffle=False, verbose=0)
        same(loaded.get_weights(), model.get_weights())
        rules = [layer for layer in loaded.layers if hasattr(layer, "function")]
        assert all(hasattr(layer.function, "rule") for layer in rules)
        assert len(rules) == (1 if k == 0 else 0)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_with_loss_scaling(policy):
    keras.config.set_dtype_policy(policy)
    try:
        dtypes = []

        @pb.custom_gradient
        def seen(x):
            dtypes.append(x.dtype)

            def grad(dy):
                dtypes.append(dy.dtype)
                return tf.where(x > 0, dy, tf.cast(0.1, dy.dtype) * dy)

            return tf.where(x > 0, x, tf.cast(0.1, x.dtype) * x), grad

        class Seen(keras.layers.Layer):
            def call(self, x):
                return seen(x)

        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05), initial_scale=2.0**10)
        model = model_of(Seen())
        model.compile(optimizer, loss="mse")
        model.fit(X, Y, epochs=3, batch_size=8, shuffle=False, verbose=0)
    finally:
        keras.config.set_dtype_policy("float32")
    native = trained(model_of(keras.layers.LeakyReLU(0.1)), "mse")
    same(model.get_weights(), native, rtol=0.2)
    assert {d.name for d in dtypes} == {policy.removeprefix("mixed_")}


def test_a_hand_written_loop_gives_the_same_as_fit():
    fitted = trained(model_of(leaky), squared)
    model = model_of(leaky)
    for _ in range(3):
        for start in (0, 8):
            x, y = X[start : start + 8], Y[start : start + 8]
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(squared(tf.constant(y), model(x, training=True)))
            gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
            for weight, gradient in zip(model.trainable_weights, gradients):
                weight.assign_sub(0.05 * gradient)
    same(model.get_weights(), fitted)


def test_a_rule_is_an_activation():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(8, activation=leaky), keras.layers.Dense(1)])
    keras.utils.set_random_seed(1)
    native = keras.Sequential(
        [keras.layers.Dense(8, activation=keras.layers.LeakyReLU(0.1)), keras.layers.Dense(1)]
    )
    same(trained(model, "mse"), trained(native, "mse"))
