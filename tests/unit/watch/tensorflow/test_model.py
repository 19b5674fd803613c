"""A model of Keras under a log, on TensorFlow: its layers and weights are heard, and it is left as it was."""

import contextlib
import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf
from rows import expect

import pullback as pb

X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
Y = np.ones((5, 1), np.float32)


def build():
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,), name="inputs")
    h = keras.layers.Dense(4, activation="tanh", name="first")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1, name="last")(h), name="net")
    model.compile("sgd", "mse")
    return model


def by_hand(model):
    w1, b1, w2, b2 = model.get_weights()
    h = np.tanh(X @ w1 + b1)
    dy = 2 * (h @ w2 + b2 - Y) / len(X)
    dh = dy @ w2.T
    dz = dh * (1 - h**2)
    return {
        "last": dy,
        "first": dh,
        "last/kernel": h.T @ dy,
        "last/bias": dy.sum(0),
        "first/kernel": X.T @ dz,
        "first/bias": dz.sum(0),
    }


def own_step(model):
    with tf.GradientTape() as tape:
        value = tf.reduce_mean((model(X) - Y) ** 2)
    variables = model.trainable_variables
    model.optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))


def fit(model, **options):
    model.fit(X, Y, batch_size=5, epochs=1, verbose=0, **options)


def own_graph(model):
    return tf.function(lambda: own_step(model))


WAYS = {
    "fit": lambda model: lambda: fit(model),
    "own loop": lambda model: lambda: own_step(model),
    "own graph": own_graph,
}


@pytest.mark.parametrize("way", WAYS)
def test_layers_and_weights_are_heard_while_it_trains(way):
    model = build()
    true = by_hand(model)
    with pb.watch(model, every=2) as log:
        step = WAYS[way](model)
        for _ in range(3):
            step()
    for name, gradient in true.items():
        assert log[name].of("step").tolist() == [0, 2], name
        expect(log[name][0], gradient, rtol=1e-4)
    assert log.names.index("last") < log.names.index("first")
    assert not any(history.none for history in log)


def test_a_model_trains_as_it_would():
    weights = []
    for watch in (pb.watch, contextlib.nullcontext):
        model = build()
        with watch(model):
            own_step(model)
        weights.append(model.get_weights())
    for ours, plain in zip(*weights):
        np.testing.assert_array_equal(ours, plain)


def test_nothing_is_left_behind(tmp_path):
    model = build()
    call, apply = keras.layers.Layer.__call__, keras.optimizers.Optimizer.apply
    own_step(model)
    keys = {id(layer): set(vars(layer)) for layer in model._flatten_layers()}
    with pb.watch(model) as log:
        own_step(model)
        assert {id(layer): set(vars(layer)) for layer in model._flatten_layers()} == keys
        copied = copy.deepcopy(model)
        again = pickle.loads(pickle.dumps(model))
        model.save(tmp_path / "net.keras")
        model.export(tmp_path / "net", verbose=False)
    assert keras.layers.Layer.__call__ is call
    assert keras.optimizers.Optimizer.apply is apply
    for each in (model, copied, again, keras.models.load_model(tmp_path / "net.keras")):
        own_step(each)
    assert np.isfinite(tf.saved_model.load(str(tmp_path / "net")).serve(X)).all()
    assert len(log["first"]) == 1


def test_an_exception_closes_it():
    model = build()
    call = keras.layers.Layer.__call__
    with pytest.raises(ValueError, match="shape"), pb.watch(model):
        model(np.ones((2, 7), np.float32))
    assert keras.layers.Layer.__call__ is call


def test_logs_inside_each_other_and_of_another_model():
    model = build()
    other = keras.models.clone_model(model)
    other.compile("sgd", "mse")
    with pb.watch(model, every=2) as outer:
        own_step(model)
        with pb.watch(model) as inner, pb.watch(other) as elsewhere:
            own_step(model)
            own_step(other)
        own_step(model)
    assert outer["first"].of("step").tolist() == [0, 2]
    assert len(inner["first"]) == len(elsewhere["first"]) == 1


def test_a_weight_without_a_gradient_is_told():
    class Unused(keras.layers.Layer):
        def build(self, shape):
            self.w = self.add_weight(name="w")

        def call(self, x):
            return x + tf.stop_gradient(self.w)

    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(Unused(name="unused")(inputs)))
    model.compile("sgd", "mse")
    with pb.watch(model) as log, pytest.warns(UserWarning, match="Gradients do not exist"):
        own_step(model)
    assert log["unused/w"].none == 1


def test_traced_before_the_block_is_said():
    model = build()
    step = own_graph(model)
    step()
    with pb.watch(model) as log:
        step()
    assert "compiled before" in str(log)


def test_a_place_in_a_functional_model(tmp_path):
    keras.utils.clear_session()
    inputs = keras.Input((3,))
    h = pb.watch(keras.layers.Dense(4)(inputs), "hidden")
    model = keras.Model(inputs, keras.layers.Dense(1)(h))
    model.compile("sgd", "mse")
    model.save(tmp_path / "net.keras")
    for each in (model, keras.models.load_model(tmp_path / "net.keras")):
        with pb.watch() as log:
            fit(each)
        assert len(log["hidden"]) == 1
