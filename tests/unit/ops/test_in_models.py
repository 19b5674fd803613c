"""Ready rules in models: in place of a framework's own gradient, in functional models, and in saved ones."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)


def pulled(f, x=X):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, tf.cast(np.cos(np.arange(y.shape.num_elements())).reshape(y.shape), y.dtype))


def test_a_rule_gives_its_gradient_to_a_keras_model_and_is_saved_with_it(tmp_path):
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(3), keras.layers.Softmax()])
    model.layers[0].set_weights([np.eye(3), np.zeros(3)])
    masked = np.float32([[-np.inf] * 3, [1, 2, 3]])
    assert np.isnan(pulled(model.layers[-1], masked)).any()
    clear = pb.override(model, {tf.nn.softmax: pb.ops.softmax})
    assert clear.replaced == {}
    for f in (clear, tf.function(clear)):
        np.testing.assert_allclose(pulled(f), pulled(model), atol=1e-6)
    assert clear.replaced == {"softmax": 1}
    clear.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(pulled(again), pulled(model), atol=1e-6)
    assert again.replaced == {"softmax": 1}
    only = pb.override(lambda x: tf.nn.softmax(x), {tf.nn.softmax: pb.ops.softmax})
    assert not np.isnan(pulled(only, masked)).any()


def test_a_rule_gives_its_gradient_to_a_module_with_the_options_of_each_call():
    class Net(torch.nn.Module):
        def forward(self, x):
            parts = [torch.softmax(x, 0), torch.nn.functional.softmax(x, dim=1), x.softmax(-1)]
            return sum(k * part for k, part in enumerate(parts, 1))

    net = Net()
    clear = pb.override(net, {torch.softmax: pb.ops.softmax})
    x, dy = (
        torch.tensor(X, requires_grad=True),
        torch.tensor(np.cos(np.arange(12)).reshape(4, 3), dtype=torch.float32),
    )
    orders = []
    for f in (net, clear):
        (first,) = torch.autograd.grad(f(x), x, dy, create_graph=True)
        orders.append([first, *torch.autograd.grad((first**2).sum(), x)])
    assert clear.replaced == {"softmax": 3}
    torch.testing.assert_close(*orders, rtol=1e-5, atol=1e-6)


def overridden(f, kind, rule, x):
    return lambda: pb.override(f, {kind: rule})(x)


T, SOFTMAX = torch.tensor(X), torch.softmax
REFUSED = [
    (overridden(torch.nn.Softmax(0), torch.nn.Softmax, pb.ops.softmax, T), "a layer or module"),
    (overridden(lambda x: SOFTMAX(x, 0, T.dtype), SOFTMAX, pb.ops.softmax, T), "with option 2 by position"),
    (overridden(lambda x: tf.reduce_prod(x, 0), "Prod", pb.ops.prod, tf.constant(X)), "of 2 tensors"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=range(len(REFUSED)))
def test_a_rule_that_cannot_stand_for_an_operation_is_refused(call, text):
    with pytest.raises(pb.errors.OverrideError, match=text):
        call()


def test_an_operation_whose_options_nobody_tells_takes_no_rule_with_options():
    import jax

    f = pb.override(lambda x: jax.lax.cumprod(x, axis=0), {jax.lax.cumprod: pb.ops.cumprod})
    with pytest.raises(pb.errors.OverrideError, match="options are not known"):
        f(X)


def test_rules_stand_in_functional_models_and_in_their_files(tmp_path):
    given = keras.Input([3])
    ops = pb.ops
    normal = ops.layer_norm(ops.rms_norm(ops.gelu(given)), axis=-1)
    parts = [
        ops.softmax(normal),
        ops.swiglu(normal, given),
        ops.cumprod(normal),
        ops.normalize(ops.mish(given)),
    ]
    model = keras.Model(given, [*parts, ops.logsumexp(normal, axis=-1)])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    y = ops.layer_norm(ops.rms_norm(ops.gelu(X)))
    expected = [
        ops.softmax(y),
        ops.swiglu(y, X),
        ops.cumprod(y),
        ops.normalize(ops.mish(X)),
        ops.logsumexp(y, axis=-1),
    ]
    for f in (model, again):
        for mine, theirs in zip(f(X), expected):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
