"""Broken promises come out as this library's errors, whatever JAX does around them."""

import jax
import jax.numpy as jnp
import pytest

import pullback as pb
from pullback import errors

WRONG = {
    "shape": (lambda x, dy: dy.sum(), errors.CotangentShapeError),
    "count": (lambda x, dy: (dy, dy), errors.CotangentCountError),
    "complex": (lambda x, dy: dy * 1j, errors.CotangentDtypeError),
    "no return": (lambda x, dy: None if dy is None else _nothing(), errors.ContractError),
    "condition": (lambda x, dy: dy if dy > 0 else -dy, errors.VectorConditionError),
}


def _nothing():
    return "nothing"


SURROUNDINGS = {
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(jnp.stack([x, x])).sum()),
    "grad of scan": lambda f: jax.grad(
        lambda x: jax.lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1].sum()
    ),
}


@pytest.mark.parametrize("around", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
@pytest.mark.parametrize(("wrong", "error"), WRONG.values(), ids=WRONG.keys())
def test_a_broken_promise_is_named_wherever_it_shows(around, wrong, error):
    @pb.custom_gradient
    def f(x):
        return 2 * x, lambda dy: wrong(x, dy)

    with pytest.raises(error, match=r"f \(test_refusals\.py"):
        around(lambda x: f(x).sum())(jnp.ones(3))


def test_a_wrong_grad_does_not_disturb_values():
    @pb.custom_gradient
    def f(x):
        return 2 * x, lambda dy: dy.sum()

    assert jax.jit(f)(jnp.ones(2)).tolist() == f(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert jax.vmap(f)(jnp.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.grad], ids=["eager", "jit", "grad"])
def test_a_condition_on_a_vector_is_explained(around):
    @pb.custom_gradient
    def f(x):
        return (x if x > 0 else -x), lambda dy: dy

    with pytest.raises(errors.VectorConditionError, match="more than one element") as raised:
        around(lambda x: f(x).sum())(jnp.ones(3))
    assert "y = jnp.where(condition, a, b)" in str(raised.value)


def test_a_condition_on_a_traced_number_is_explained():
    @pb.custom_gradient
    def f(x):
        return (x if x > 0 else -x), lambda dy: dy

    with pytest.raises(errors.VectorConditionError, match="that is traced") as raised:
        jax.jit(f)(1.0)
    assert "jnp.where" in str(raised.value)


def test_a_body_without_grad_is_refused_under_jit():
    @pb.custom_gradient
    def f(x):
        return x

    with pytest.raises(errors.MissingGradError):
        jax.jit(f)(jnp.ones(2))


def test_a_cotangent_of_another_precision_is_cast(mode):
    @pb.custom_gradient
    def f(x):
        return 2 * x, lambda dy: dy.astype(jnp.float64) * 2

    assert mode(jax.grad(lambda x: f(x).sum()))(jnp.ones(2, jnp.float32)).dtype == jnp.float32
