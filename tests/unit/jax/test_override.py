"""Other gradients inside a function: its jaxpr is run again."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.errors import OverrideError


def guided(dy, x):
    return jnp.where((x > 0) & (dy > 0), dy, 0.0)


def doubled(dy, x, output):
    return 2 * dy * (1 - output**2)


def everywhere(x):
    y = jnp.tanh(x)
    y = jax.jit(jnp.tanh)(y)
    y, _ = jax.lax.scan(lambda c, _: (jnp.tanh(c), None), y, None, length=2)
    y = jax.lax.cond(y.sum() > -9, jnp.tanh, lambda y: y, y)
    y = jax.checkpoint(lambda y: jnp.tanh(y))(y)
    return jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.tanh(c[1])), (0, y))[1].sum()


def loops_unrolled(tanh):
    def run(x):
        for _ in range(8):
            x = tanh(x)
        return x.sum()

    return run


@pytest.mark.parametrize("kind", ["tanh", jnp.tanh, jax.lax.tanh_p], ids=["name", "function", "primitive"])
def test_places_are_found_in_calls_loops_branches_and_checkpoints(kind, mode):
    f = pb.override(everywhere, {kind: doubled})
    plain = loops_unrolled(pb.with_gradient(jnp.tanh, doubled))
    x = jnp.array([0.5, -1.5, 2.5])
    np.testing.assert_allclose(mode(f)(x), everywhere(x))
    np.testing.assert_allclose(mode(jax.jacfwd(f))(x), jax.grad(plain)(x), rtol=1e-9)
    np.testing.assert_allclose(
        mode(jax.jacfwd(jax.jacfwd(f)))(x), jax.hessian(plain)(x), rtol=1e-9, atol=1e-12
    )
    assert f.replaced == {"tanh": 6}


def test_reverse_mode_and_its_second_order_go_through_a_loop(mode):
    def looped(x):
        return jax.lax.scan(lambda c, _: (jnp.tanh(c), None), x, None, length=8)[0].sum()

    f = pb.override(looped, {"tanh": doubled})
    plain = loops_unrolled(pb.with_gradient(jnp.tanh, doubled))
    x = jnp.array([0.5, -1.5, 2.5])
    np.testing.assert_allclose(mode(jax.grad(f))(x), jax.grad(plain)(x), rtol=1e-9)
    np.testing.assert_allclose(
        mode(jax.jacrev(jax.jacrev(f)))(x), jax.hessian(plain)(x), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("kind", [jax.nn.relu, "relu"], ids=["function", "name"])
def test_a_function_that_jax_keeps_whole_is_one_place(kind, mode):
    def f(x):
        return jax.nn.relu(x) * jnp.array([1.0, -1.0, 1.0])

    overridden = pb.override(f, {kind: guided})
    x = jnp.array([1.0, 1.0, -1.0])
    assert mode(jax.grad(lambda x: overridden(x).sum()))(x).tolist() == [1.0, 0.0, 0.0]
    assert overridden.replaced == {"relu": 1}
    assert jax.vmap(jax.grad(lambda x: overridden(x).sum()))(x[None]).tolist() == [[1.0, 0.0, 0.0]]


def test_the_original_is_unchanged():
    f = pb.override(jnp.tanh, {"tanh": doubled})
    assert float(jax.grad(f)(0.0)) == 2.0
    assert float(jax.grad(jnp.tanh)(0.0)) == 1.0


def test_a_module_can_be_overridden():
    model = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    f = pb.override(model, {jax.nn.relu: guided})
    x = jnp.ones(3)
    np.testing.assert_allclose(f(x), model(x), rtol=1e-12)
    assert f.replaced == {"relu": 1}


def test_statics_and_structures_pass_through():
    f = pb.override(lambda x, axis=0, *, k=2: {"y": jnp.tanh(x).sum(axis) * k, "n": 3}, {"tanh": doubled})
    got = f(jnp.zeros((2, 3)), axis=1, k=5)
    assert got["y"].tolist() == [0.0, 0.0]
    assert got["n"] == 3
    assert type(got["n"]) is int


def test_a_rule_keeps_its_own_gradient():
    @pb.custom_gradient
    def seven(x):
        return jnp.tanh(x), lambda dy: 7 * dy

    f = pb.override(lambda x: seven(x) + jnp.tanh(x), {"tanh": doubled})
    assert float(jax.grad(f)(0.0)) == 9.0
    assert f.replaced == {"tanh": 1}


def test_a_kind_without_a_place_is_an_error_that_lists_what_is_there():
    with pytest.raises(OverrideError, match="nothing in it is of the kind 'relu'") as raised:
        pb.override(lambda x: jnp.sin(x) * 2, {"relu": guided})(jnp.ones(3))
    assert "mul, sin" in str(raised.value)


def test_a_function_of_many_operations_is_no_kind():
    with pytest.raises(OverrideError, match="no operation: it is made of"):
        pb.override(jnp.sin, {jax.nn.gelu: guided})


def test_a_context_is_refused_with_the_way_out():
    with pytest.raises(OverrideError, match=r"pb\.override\(f"):
        pb.override({jax.nn.relu: guided})
