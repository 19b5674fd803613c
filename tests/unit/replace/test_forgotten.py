"""A gradient that forgot `dy` is refused; one that has it is handed what it names."""

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = [0.5, -1.0, 2.0]


def pulled(function, x, dy=3.0):
    """Pull a cotangent that is not one."""
    if isinstance(x, tf.Tensor):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x, output_gradients=dy * tf.ones_like(y)).numpy().tolist()
    if isinstance(x, torch.Tensor):
        x = x.requires_grad_()
        y = function(x)
        return torch.autograd.grad(y, x, dy * torch.ones_like(y))[0].tolist()
    y, pull = jax.vjp(function, x)
    return pull(dy * jnp.ones_like(y))[0].tolist()


HOSTS = {"tensorflow": tf, "jax": jnp, "torch": torch}
MAKE = {"tensorflow": tf.constant, "jax": jnp.asarray, "torch": torch.tensor}
RELU = {"tensorflow": tf.nn.relu, "jax": jax.nn.relu, "torch": torch.relu}


@pytest.fixture(params=HOSTS)
def host(request):
    return request.param


@pytest.mark.parametrize(
    "grad",
    [
        lambda x: x,
        lambda x, y: x,
        lambda y, x: x,
        lambda x, dy: x * dy,
        lambda x, output: x,
        lambda x, /: x,
        lambda x, *rest: x,
    ],
)
def test_a_first_parameter_that_is_an_argument_is_refused_where_it_is_given(grad):
    with pytest.raises(pb.errors.GradSignatureError, match="would be handed the cotangent"):
        pb.with_gradient(lambda x, y=1.0: x, grad)


def test_a_function_of_a_framework_is_no_gradient(host):
    xp = HOSTS[host]
    cos = (lambda x: xp.cos(x)) if host == "torch" else xp.cos  # a builtin of PyTorch shows no names
    with pytest.raises(pb.errors.GradSignatureError, match="would be handed the cotangent"):
        pb.with_gradient(xp.sin, cos)


@pytest.mark.parametrize(
    "grad",
    [
        lambda dy: 2 * dy,
        lambda g: 2 * g,
        lambda dy, x: 2 * dy + 0 * x,
        lambda dy, *args: 2 * dy + 0 * args[0],
        lambda *args: 2 * args[0],
        lambda dy, output: 2 * dy + 0 * output,
        lambda dy, anything: 2 * dy + 0 * anything,
        lambda dy, *, x: 2 * dy + 0 * x,
    ],
)
def test_every_signature_with_a_place_for_the_cotangent_is_understood(host, grad):
    assert pulled(pb.with_gradient(lambda x: x * 1.0, grad), MAKE[host](X)) == [6.0, 6.0, 6.0]


def test_an_argument_may_be_called_dy(host):
    def scale(x, dy):
        return x * dy

    f = pb.with_gradient(scale, lambda g, dy: {"x": g * dy})
    assert pulled(lambda x: f(x, x * 0 + 2.0), MAKE[host](X)) == [6.0, 6.0, 6.0]
    with pytest.raises(pb.errors.GradSignatureError, match="fix: lambda cotangent, x, dy: …"):
        pb.with_gradient(scale, lambda dy, x: dy * x)


def test_the_second_cotangent_is_looked_at_too(host):
    f = pb.with_gradient(lambda x: (x * 1.0, x * 2.0), lambda dy, x: dy * x)
    with pytest.raises(pb.errors.GradSignatureError, match="`x` would be handed the cotangent"):
        pulled(lambda x: f(x)[0], MAKE[host](X))


def test_an_override_without_dy_is_refused_by_the_usual_names(host):
    relu = RELU[host]
    with pytest.raises(pb.errors.GradSignatureError, match="`x` would be handed the cotangent"):
        pulled(pb.override(lambda x: relu(x) * 2.0, {relu: lambda x: x}), MAKE[host](X))
    f = pb.override(lambda x: relu(x) * 2.0, {relu: lambda dy, x: dy + 0 * x})
    assert pulled(f, MAKE[host](X)) == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("partial", [lambda dy: dy, lambda dy, x: dy * x, lambda x, dy: dy * x])
def test_a_partial_derivative_takes_no_cotangent(partial):
    with pytest.raises(pb.errors.GradSignatureError, match="no cotangent"):
        pb.elementwise(lambda x: x * 1.0, partial)


def test_a_partial_derivative_that_cannot_be_called_is_refused(host):
    f = pb.elementwise(lambda x: x * 1.0, lambda x, y: x)
    with pytest.raises(pb.errors.GradSignatureError, match="cannot be called as the function is"):
        pulled(f, MAKE[host](X))


def test_a_partial_derivative_is_cast_to_the_dtype_of_the_output(host):
    f = pb.elementwise(lambda x: x * 1.0, lambda x: x > 0)
    assert pulled(f, MAKE[host](X)) == [3.0, 0.0, 3.0]


def test_an_external_pullback_without_dy_is_refused(host):
    @pb.external(output=lambda x: x)
    def double(x):
        return 2 * x

    @double.pullback
    def _(x):
        return 2 * x

    with pytest.raises(pb.errors.GradSignatureError, match="`x` would be handed the cotangent"):
        pulled(double, MAKE[host](X))
