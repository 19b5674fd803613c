"""Every form in which a body may return its outputs, and a `grad` its cotangents: pytrees and modules too."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb


def test_an_integer_output_has_no_cotangent_to_give(mode):
    handed = []

    @pb.custom_gradient
    def ordered(x):
        order = jnp.argsort(x)

        def grad(dy, dorder):
            handed.append(dorder.dtype)
            return jnp.zeros_like(x).at[order].set(dy)

        return x[order], order, grad

    x, w = jnp.array([3.0, 1.0, 2.0]), jnp.array([1.0, 10.0, 100.0])
    assert mode(jax.grad(lambda x: (ordered(x)[0] * w).sum()))(x).tolist() == [100.0, 1.0, 10.0]
    assert all(jnp.issubdtype(dtype, jnp.integer) for dtype in handed)
    values, order = mode(ordered)(x)
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert order.tolist() == [1, 2, 0]
    assert mode(lambda x: jax.jvp(ordered, (x,), (w,))[1][0])(x).tolist() == [10.0, 100.0, 1.0]


def test_unused_outputs_get_zeros_and_none_is_no_gradient(mode):
    @pb.custom_gradient
    def two(x, y):
        return (2 * x, 3 * y), lambda dx, dy: (2 * dx + 0 * dy.sum(), None)

    gx, gy = mode(jax.grad(lambda x, y: two(x, y)[0].sum(), (0, 1)))(jnp.ones(2), jnp.ones(3))
    assert gx.tolist() == [2.0, 2.0]
    assert gy.tolist() == [0.0, 0.0, 0.0]
    _, tangents = mode(lambda x, y: jax.jvp(two, (x, y), (x, y)))(jnp.ones(2), jnp.ones(3))
    assert tangents[0].tolist() == [2.0, 2.0]
    assert tangents[1].tolist() == [0.0, 0.0, 0.0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    a: Any
    b: Any
    n: int = dataclasses.field(metadata={"static": True}, default=2)


def test_a_registered_dataclass_is_a_structure_of_arguments_and_of_cotangents(mode):
    @pb.custom_gradient
    def product(pair):
        return pair.a * pair.b * pair.n, lambda dy: Pair(dy * pair.b * pair.n, None, pair.n)

    got = mode(jax.grad(lambda pair: product(pair).sum()))(Pair(jnp.ones(2), 3 * jnp.ones(2)))
    assert (got.a.tolist(), got.b.tolist(), got.n) == ([6.0, 6.0], [0.0, 0.0], 2)


def test_a_registered_dataclass_is_a_structure_of_outputs(mode):
    @pb.custom_gradient
    def spread(x):
        return Pair(2 * x, 3 * x), lambda d: 2 * d.a + 3 * d.b

    assert mode(jax.grad(lambda x: spread(x).b.sum()))(jnp.ones(2)).tolist() == [3.0, 3.0]
    assert isinstance(mode(spread)(jnp.ones(2)), Pair)


def test_a_dataclass_is_refused_by_its_fields_and_a_structure_once_it_is_registered(mode):
    @dataclasses.dataclass
    class Late:
        a: Any
        b: Any

    @pb.custom_gradient
    def product(late):
        return late.a * late.b, lambda dy: Late(dy * late.b, dy * late.a)

    gradient = jax.grad(lambda a, b: product(Late(a, b)), (0, 1))
    with pytest.raises(pb.errors.NoTensorError, match=r"pass late\.a, late\.b, or register `Late` with JAX"):
        mode(gradient)(2.0, 3.0)
    jax.tree_util.register_dataclass(Late, ["a", "b"], [])
    assert mode(gradient)(2.0, 3.0) == (3.0, 2.0)


def test_complex_cotangents_are_those_of_the_documented_convention(mode):
    seen = []

    @pb.custom_gradient
    def square(z):
        def grad(dy):
            seen.append(dy)
            return dy * jnp.conj(2 * z)

        return z * z, grad

    @pb.custom_gradient
    def size(z):
        return jnp.real(z * jnp.conj(z)), lambda dy: 2 * dy * z

    z = jnp.array([1 + 2j, 3 - 1j])
    weights = jnp.array([1 - 2j, 0.5 + 1j])
    for rule, plain in ((square, lambda z: z * z), (size, lambda z: jnp.real(z * jnp.conj(z)))):

        def loss(z, f):
            return jnp.real(weights * f(z)).sum()

        np.testing.assert_allclose(
            mode(jax.grad(functools.partial(loss, f=rule)))(z), jax.grad(loss)(z, plain)
        )
        pushed = mode(lambda z, rule=rule: jax.jvp(rule, (z,), (weights,))[1])(z)
        np.testing.assert_allclose(pushed, jax.jvp(plain, (z,), (weights,))[1])
    seen.clear()  # dL/d conj(y) of L = Re(w·y) is conj(w)
    jax.grad(lambda z: jnp.real(weights * square(z)).sum())(z)
    np.testing.assert_allclose(seen[-1], jnp.conj(weights))


def test_the_cotangent_of_a_structure_that_can_be_called_is_no_second_order(mode):
    @pb.custom_gradient
    def call(x, f):
        def grad(dy):
            return dy * f.args[0], jax.tree_util.Partial(f.func, dy * x)

        return f(x), grad

    f = jax.tree_util.Partial(jnp.multiply, jnp.array(3.0))
    dx, df = mode(jax.grad(call, argnums=(0, 1)))(jnp.array(2.0), f)
    assert (float(dx), float(df.args[0])) == (3.0, 2.0)


class Gain(eqx.Module):
    gain: jax.Array

    def __call__(self, x):
        return self.gain * x


def test_the_cotangent_of_a_module_that_can_be_called_is_no_second_order(mode):
    @pb.custom_gradient
    def call(x, f):
        def grad(dy):
            return dy * f.gain, Gain(dy * x)

        return f(x), grad

    f = Gain(jnp.array(3.0))
    dx, df = mode(jax.grad(call, argnums=(0, 1)))(jnp.array(2.0), f)
    assert (float(dx), float(df.gain)) == (3.0, 2.0)
    mixed = mode(jax.grad(lambda x, f: jax.grad(call, argnums=1)(x, f).gain))(jnp.array(2.0), f)
    assert float(mixed) == 1.0


def test_a_gradgrad_beside_such_a_cotangent_is_one():
    @pb.custom_gradient
    def call(x, f):
        def grad(dy):
            def gradgrad(ddx, ddf):
                return 100.0 * ddx, None

            return dy * f.args[0], jax.tree_util.Partial(f.func, dy * x), gradgrad

        return f(x), grad

    f = jax.tree_util.Partial(jnp.multiply, jnp.array(3.0))
    assert float(jax.grad(jax.grad(call))(jnp.array(2.0), f)) == 100.0


@pytest.mark.parametrize("scale", [2.0, np.float64(2.0)], ids=["weak", "strong"])
def test_gradients_and_tangents_are_as_weak_as_their_values(scale, mode):
    @pb.custom_gradient
    def f(x):
        return x * scale, lambda dy: dy * scale

    def plain(x):
        return x * scale

    for x in (1.0, jnp.asarray(1.0, jnp.float64), jnp.asarray(1.0, jnp.float32)):
        for derivative in (
            jax.grad,
            lambda f: lambda v: jax.jvp(f, (v,), (v,))[1],
            lambda f: lambda v: jax.linearize(f, v)[1](v),
        ):
            got, want = (jax.typeof(mode(derivative(g))(x)) for g in (f, plain))
            assert got == want
