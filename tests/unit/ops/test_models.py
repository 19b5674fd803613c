"""Ready rules in models: in a functional model of Keras, saved and loaded; and put into models that exist."""

import jax
import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(6, 2)


def model_of(middle):
    keras.utils.set_random_seed(1)
    inputs = keras.Input([2])
    return keras.Model(inputs, keras.layers.Dense(1)(middle(keras.layers.Dense(3)(inputs))))


def gradients(model, x=X):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(model(x) ** 2)
    return tape.gradient(y, model.trainable_variables)


@pytest.mark.parametrize(
    "middle",
    [
        pb.ops.log_cosh,
        lambda x: pb.ops.relu(x, at_zero=0.5),
        lambda x: pb.ops.logaddexp(x, pb.ops.sigmoid(x)),
        lambda x: pb.ops.round(pb.ops.sort(x), at_step=1.0) + pb.round(x),
    ],
    ids=["log_cosh", "relu", "of two", "two of one name"],
)
def test_a_functional_model_is_saved_and_loaded(middle, tmp_path):
    model = model_of(middle)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(X), model(X))
    for mine, theirs in zip(gradients(again), gradients(model)):
        np.testing.assert_array_equal(mine, theirs)


def test_a_keras_model_is_given_a_ready_rule():
    """The value stays that of the model; the gradient is the rule's, which is no longer the framework's."""

    class Entropy(keras.layers.Layer):
        def call(self, x):
            return tf.math.xlogy(x, 2 + 0 * x)

    inputs = keras.Input([2])
    model = keras.Model(inputs, Entropy()(inputs))
    stable = pb.override(model, {tf.math.xlogy: pb.ops.xlogy})
    x = tf.zeros([1, 2])
    found = []
    for one in (model, stable):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = one(x)
        found.append((y.numpy(), tape.gradient(y, x).numpy()))
    assert stable.replaced == {"xlogy": 1}
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert not found[0][1].any()  # TensorFlow's own: wrong where x = 0
    np.testing.assert_allclose(found[1][1], np.log(2), rtol=1e-6)


def test_softplus_is_overridden_wherever_it_occurs():
    model = model_of(keras.layers.Activation("softplus"))
    stable = pb.override(model, {tf.nn.softplus: pb.ops.softplus})
    for mine, theirs in zip(gradients(stable), gradients(model)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    assert stable.replaced == {"softplus": 1}


def tripled(rule):
    """A rule whose gradient shows that it was used."""
    return pb.elementwise(rule.rule.function, lambda x: 3 + 0 * x, differs="to be seen")


def test_a_rule_is_a_gradient_on_every_host():
    marked = tripled(pb.ops.softplus)
    x = np.array([0.5, -1.0], np.float32)
    by_jax = pb.override(jax.nn.softplus, {jax.nn.softplus: marked})
    assert jax.grad(lambda x: by_jax(x).sum())(x).tolist() == [3, 3]
    by_torch = pb.override(lambda x: torch.nn.functional.softplus(x), {torch.nn.functional.softplus: marked})
    t = torch.tensor(x, requires_grad=True)
    assert torch.autograd.grad(by_torch(t).sum(), t)[0].tolist() == [3, 3]
