"""What the README says of the custom gradients of JAX and PyTorch is true, in their own transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import pullback as pb


def body(x, mode="sin"):
    xp = pb.namespace(x)

    def grad(dy):
        return dy * xp.cos(x)

    return getattr(xp, mode)(x), grad


ours = pb.custom_gradient(body)


@jax.custom_vjp
def sine(x):
    return jnp.sin(x)


sine.defvjp(lambda x: (sine(x), x), lambda x, dy: (dy * jnp.cos(x),))


@jax.custom_vjp
def named(x, mode):
    return getattr(jnp, mode)(x)


named.defvjp(lambda x, mode: (named(x, mode), x), lambda x, dy: (dy * jnp.cos(x), None))


def test_forward_mode_in_jax():
    x = jnp.asarray([0.3, 0.7])
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jacfwd(sine)(x)
    np.testing.assert_allclose(jax.jacfwd(ours)(x), jnp.diag(jnp.cos(x)), rtol=1e-6)
    np.testing.assert_allclose(
        jax.hessian(lambda x: ours(x).sum())(x), jnp.diag(-jnp.sin(x)), rtol=1e-6, atol=1e-7
    )


def test_statics_in_jax():
    x = jnp.asarray([0.3, 0.7])
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.grad(lambda x: named(x, "sin").sum())(x)
    np.testing.assert_allclose(jax.grad(lambda x: ours(x, "sin").sum())(x), jnp.cos(x), rtol=1e-6)


class Kept(torch.autograd.Function):
    """exp(2x), with the exponential kept by the forward as it stands."""

    @staticmethod
    def forward(ctx, x):
        ctx.e = torch.exp(2 * x)
        return ctx.e.clone()

    @staticmethod
    def backward(ctx, dy):
        return dy * 2 * ctx.e


@pb.custom_gradient
def kept(x):
    e = torch.exp(2 * x)

    def grad(dy):
        return dy * 2 * e

    return e * 1.0, grad


def second(f):
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((f(x) * x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return h, (4 * x.exp() ** 2 * (1 + x)).detach()  # of x·exp(2x)


def test_second_order_in_pytorch():
    found, true = second(Kept.apply)
    assert not torch.allclose(found, true)  # and no error
    torch.testing.assert_close(*second(kept))


def test_a_closure_in_pytorch():
    w = torch.tensor([2.0], requires_grad=True)
    scaled = w * 3

    class Native(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * scaled

        @staticmethod
        def backward(ctx, dy):
            return dy * scaled

    x = torch.tensor([1.0], requires_grad=True)
    Native.apply(x).sum().backward()
    assert w.grad is None  # silently

    rule = pb.custom_gradient(lambda x: (x * scaled, lambda dy: dy * scaled))
    with pytest.raises(pb.errors.CapturedTensorError, match="`scaled`"):
        rule(x)
