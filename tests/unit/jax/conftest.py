"""What the tests of the JAX host share: double precision, and rules whose derivatives are known."""

import jax
import jax.numpy as jnp
import pytest

import pullback as pb


@pytest.fixture(autouse=True)
def double():
    """Compute in double precision, and leave the configuration as it was."""
    with jax.enable_x64(True):
        yield


@pb.custom_gradient
def _weighted_sine(x, w):
    kept = jnp.cos(x)

    def grad(dy):
        return dy * kept * w, dy * jnp.sin(x)

    return jnp.sin(x) * w, grad


@pb.custom_gradient
def _exponential(x, w):
    y = jnp.exp(x)

    def grad(dy):
        return dy * _exponential(x, w), dy * y  # a `grad` that calls its own rule

    return y * w, grad


def _product_sum(x, w):
    return jnp.square(x) * w


_elementwise = pb.elementwise(_product_sum, [lambda x, w: 2 * x * w, lambda x, w: x * x])


@pb.custom_gradient
def _pushed(x, w):
    def grad(dy):
        return dy * w / x, dy * jnp.log(x)

    return w * jnp.log(x), grad


@_pushed.pushforward
def _(dx, dw, x, w):
    return dx * w / x + dw * jnp.log(x)


# rule, the function it is the derivative of
RULES = {
    "residual": (_weighted_sine, lambda x, w: jnp.sin(x) * w),
    "calls itself": (_exponential, lambda x, w: jnp.exp(x) * w),
    "elementwise": (_elementwise, _product_sum),
    "pushforward": (_pushed, lambda x, w: w * jnp.log(x)),
    "grafted": (
        pb.with_gradient(
            lambda x, w: jnp.tanh(x) * w, lambda dy, x, w, output: (dy * (w - output**2 / w), dy * output / w)
        ),
        lambda x, w: jnp.tanh(x) * w,
    ),
}


@pytest.fixture(params=RULES.values(), ids=RULES.keys())
def pair(request):
    """A rule, and the plain function that has its derivatives."""
    return request.param


@pytest.fixture
def point():
    return jnp.array([0.5, 1.5, 2.5]), jnp.array([1.0, -2.0, 3.0])


MODES = {"eager": lambda f: f, "jit": jax.jit}


@pytest.fixture(params=MODES.values(), ids=MODES.keys())
def mode(request):
    """Leave a function as it is, or compile it."""
    return request.param
