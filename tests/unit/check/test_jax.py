"""Checking on JAX: the program stays as it was, and 64 bits are really used."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
import pullback.checker
from pullback.view.jax import adapter
from pullback.view.jax.adapter import JaxAdapter
from pullback.view.jax.native import bypassed

X = jnp.array([0.5, -1.0, 2.0])
QUICK = {"seed": 1, "export": False}


def tripled():
    """Make a rule whose gradient is 3 where the derivative is 1."""
    rule = jax.custom_vjp(lambda x: x * 1.0)
    rule.defvjp(lambda x: (x * 1.0, None), lambda _, d: (3.0 * d,))
    return rule


@pb.custom_gradient
def ours(x):
    return x * 1.0, lambda dy: 3.0 * dy


def test_differences_are_taken_in_float64_and_the_program_stays_in_float32():
    seen = set()

    def cube(x):
        seen.add(x.dtype.name)
        return x**3

    report = pb.check(cube, X, probes=["derivative"], seed=1)
    assert report.oracle == "differences in float64"
    assert report.resolution < 1e-9
    assert "float64" in seen
    assert not jax.config.jax_enable_x64
    assert jnp.asarray(0.5).dtype == "float32"


@pytest.mark.parametrize("rule", [tripled(), ours], ids=["JAX's", "ours"])
def test_a_compiled_function_has_its_rule_after_a_check_and_is_bypassed_in_it(rule):
    before = jax.jit(lambda x: rule(x))
    after = jax.jit(lambda x: rule(x))
    before(X)  # traced with its rule
    for function in (before, after):
        assert pb.check(function, X, **QUICK).causes == ["surrogate"]
        np.testing.assert_allclose(jax.grad(lambda x, f=function: f(x).sum())(X), 3.0)


def test_another_thread_is_not_bypassed():
    found = []
    with bypassed():
        assert jax.grad(lambda x: tripled()(x).sum())(X)[0] == 1.0
        thread = threading.Thread(target=lambda: found.append(jax.grad(lambda x: tripled()(x).sum())(X)[0]))
        thread.start()
        thread.join()
    assert found == [3.0]


def test_a_good_rule_can_do_everything():
    @pb.custom_gradient
    def cube(x):
        return x * x * x, lambda dy: 3 * dy * x * x

    table = pb.check(cube, X, seed=1).capabilities
    assert set(table.values()) == {"yes"}
    names = "reverse, second order, forward, jit, vmap, float32, float16, bfloat16, export"
    assert set(table) == set(names.split(", "))


def test_a_custom_vjp_has_no_forward_mode_and_a_callback_no_export():
    def sine(x):
        return jax.pure_callback(
            lambda v: np.sin(v).astype(v.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype), x
        )

    rule = jax.custom_vjp(sine)
    rule.defvjp(lambda x: (sine(x), x), lambda x, d: (d * jnp.cos(x),))
    report = pb.check(rule, X, seed=1, order=1, own_points=False)
    assert report.verdict == "right"
    assert (report.capabilities["forward"], report.capabilities["export"]) == ("refused", "no")


def test_complex_cotangents_are_those_of_the_checker():
    z = jnp.array([1.0 + 2.0j, -0.5 + 1.0j])
    found = (
        JaxAdapter(lambda z: z * z, (z,), {})
        .subject()
        .pullback((np.asarray(z),), (np.array([1j, 2.0], "complex64"),))
    )
    np.testing.assert_allclose(found[0], np.array([1j, 2.0]) * np.conj(2 * np.asarray(z)), rtol=1e-6)


def test_the_arrays_of_a_module_are_inputs():
    layer = eqx.nn.Linear(3, 2, key=jax.random.key(0))
    found = JaxAdapter(layer, (X,), {}).subject()
    assert found.names == ("x", "weight", "bias")
    assert pb.check(layer, X, **QUICK).verdict == "right"


def test_the_code_of_a_module_runs():
    class Scale(eqx.Module):
        weight: jax.Array

        def __call__(self, x):
            rule = jax.custom_vjp(lambda x, w: x * w)
            rule.defvjp(lambda x, w: (x * w, (x, w)), lambda kept, d: (d * kept[1], 2 * d * kept[0]))
            return rule(x, self.weight)

    module = Scale(X + 3)
    report = pb.check(module, X, **QUICK)
    assert "weight" in report.failures[0].sentence
    shown = []
    try:
        exec(report.failures[0].reproducer, {"f": module, "print": shown.append})
    finally:
        jax.config.update("jax_enable_x64", False)
    by_x, by_weight = (np.asarray(g) for g in shown[0])
    np.testing.assert_allclose(by_weight / by_x, 2 * X / (X + 3), rtol=1e-5)


def test_a_random_key_is_no_input():
    report = pb.check(lambda key, x: x * jax.random.normal(key, x.shape), jax.random.key(0), X, **QUICK)
    assert report.verdict == "right"


def test_a_missing_gradient_in_the_middle_is_zeros_and_said_to_be_missing():
    rule = jax.custom_vjp(lambda x, m: x * m)
    rule.defvjp(lambda x, m: (x * m, m), lambda m, d: (d * m, None))
    assert pb.check(rule, X, X + 2, **QUICK).verdict == "right"  # None, said by the rule itself
    report = pb.check(lambda x, m: rule(x, m) * 2, X, X + 2, **QUICK)
    assert report.causes == ["missing-term"]


def test_a_rule_that_is_called_past_a_default_gets_the_gradient_of_the_keyword():
    @jax.custom_vjp
    def line(x, shift=1.0, slope=2.0):
        return x * slope + shift

    line.defvjp(
        lambda x, shift, slope: (x * slope + shift, (x, slope)),
        lambda kept, d: (d * kept[1], jnp.sum(d), jnp.sum(d * kept[0])),
    )
    assert pb.check(line, X, slope=jnp.asarray(3.0), **QUICK).verdict == "right"


def test_what_custom_vjp_becomes_under_an_option_of_jax_is_bypassed_too():
    jax.config.update("jax_custom_vjp3", True)
    try:
        rule = tripled()
    finally:
        jax.config.update("jax_custom_vjp3", False)
    with bypassed() as met:
        assert jax.grad(lambda x: rule(x).sum())(X)[0] == 1.0
    assert len(met) == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_any_precision_is_checked(dtype):
    assert pb.check(jnp.tanh, X.astype(dtype), **QUICK).verdict == "right"


def test_a_result_is_waited_for_where_the_wait_can_be_stopped(monkeypatch):
    waits = []
    monkeypatch.setattr(adapter, "wait", waits.append)
    report = pb.check(jnp.sin, X, probes=["derivative"], own_points=False, seed=1)
    assert (report.verdict, len(waits) > 3) == ("right", True)
