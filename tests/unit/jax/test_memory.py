"""Nothing of a call outlives it: no array of an eager step, no traced array of a program."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb


@pb.custom_gradient
def softplus(x):
    e = jnp.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return jnp.log(1 + e), grad


@pb.custom_gradient(order=1)
def first_order(x):
    return 2 * x, lambda dy: 2 * dy


@pb.custom_gradient
def second_order(x):
    def grad(dy):
        return dy * 2 * x, lambda ddx: 2 * ddx * dy

    return x * x, grad


@pb.external
def foreign(x):
    return 2 * x


@foreign.pullback
def _(dy, x):
    return 2 * dy


RULES = {
    "residual": softplus,
    "order=1": first_order,
    "gradgrad": second_order,
    "external": foreign,
    "elementwise": pb.elementwise(jnp.square, lambda x: 2 * x),
    "straight_through": pb.straight_through(jnp.round),
    "surrogate": pb.surrogate(jnp.sign, like=jnp.tanh),
    "clip_gradient": lambda x: pb.clip_gradient(x, norm=1.0),
    "with_gradient": pb.with_gradient(jnp.tanh, lambda dy, x, output: dy * (1 - output**2)),
}


def alive():
    gc.collect()
    return len(jax.live_arrays())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_eager_steps_keep_no_array(rule):
    x = jnp.ones([1024, 1024], jnp.float32)  # 4 MB

    def step(scale):
        _, pull = jax.vjp(rule, x * scale)
        return pull(x)[0]

    for i in range(3):
        step(float(i))
    before = alive()
    for i in range(200):
        step(float(i))
    assert alive() == before


@pytest.mark.parametrize("rule", [softplus, second_order], ids=["residual", "gradgrad"])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: lambda x: jax.linearize(f, x)[1](x),
        lambda f: lambda x: jax.vmap(jax.grad(lambda x: f(x).sum()))(x),
        lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
        lambda f: jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()),
    ],
    ids=["jvp", "linearize", "vmap of grad", "grad of vmap", "grad of grad"],
)
def test_eager_steps_of_every_kind_keep_no_array(transform, rule):
    step = transform(rule)
    for i in range(3):
        step(jnp.full([4, 3], 0.1 * i))
    before = alive()
    for i in range(20):
        step(jnp.full([4, 3], 0.1 * i))
    assert alive() == before


def repeated(f):
    return lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "around", [lambda f: f, jax.vmap, jax.checkpoint, repeated], ids=["plain", "vmap", "checkpoint", "scan"]
)
def test_a_program_keeps_no_traced_array(around, name):
    f = around(RULES[name])

    def gradient(x):
        return jax.grad(lambda x: f(x).sum())(x)

    x = jnp.linspace(0.1, 1.0, 6).reshape(3, 2)
    with jax.checking_leaks():
        got = jax.jit(gradient)(x), jax.jit(f)(x), jax.vmap(gradient)(x)
    np.testing.assert_allclose(got[0], gradient(x), rtol=1e-6)
