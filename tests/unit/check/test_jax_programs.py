"""On JAX a check compiles a function once a shape and dtype, where that gives what the function gives."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.view.jax import program
from pullback.view.jax.adapter import JaxAdapter
from pullback.view.jax.program import Program, Steps

X = jnp.array([0.3, -1.2, 2.0])


def rule(body: Any, slope: Any) -> Any:
    """Make a native rule of a function and its slope."""
    function = jax.custom_vjp(body)
    function.defvjp(lambda x: (body(x), x), lambda x, dy: (dy * slope(x),))
    return function


def test_a_body_is_traced_and_not_run_for_every_question() -> None:
    calls = []

    def body(x: Any) -> Any:
        calls.append(x)
        return jnp.log1p(jnp.exp(x))

    report = pb.check(rule(body, jax.nn.sigmoid), X, seed=0)
    assert report.verdict == "right"
    assert report.forwards > 60
    assert len(calls) < report.forwards / 2
    assert sum(not isinstance(x, jax.core.Tracer) for x in calls) < 12


def test_a_body_that_prints_is_called_as_it_stands_and_hides_nothing() -> None:
    def printing(x: Any) -> Any:
        jax.debug.print("{}", x)
        return jnp.sin(x)

    def leaving(x: Any) -> Any:
        return jax.pure_callback(np.sin, x, x)

    kinds = [program.callbacks(str(jax.make_jaxpr(f)(X))) for f in (jnp.sin, printing, leaving)]
    assert kinds == [set(), {"debug"}, {"pure"}]
    opaque = [JaxAdapter(rule(f, jnp.cos), (X,), {}).subject().opaque for f in (printing, leaving)]
    assert [asked and asked() for asked in opaque] == [False, True]


def test_a_body_that_draws_numbers_is_called_as_it_stands() -> None:
    rng = np.random.default_rng(0)
    report = pb.check(rule(lambda x: x * rng.normal(), jnp.ones_like), X, seed=0)
    assert report.causes == ["stateful-forward"]


def test_a_gradient_that_draws_numbers_is_called_as_it_stands() -> None:
    rng = np.random.default_rng(0)
    report = pb.check(rule(jnp.sin, lambda x: jnp.cos(x) * rng.normal()), X, seed=0)
    assert report.causes == ["non-deterministic"]


@pytest.mark.parametrize(("slope", "verdict"), [(np.cos, "right"), (np.sin, "wrong")])
def test_a_body_that_looks_at_values_is_called_as_it_stands(slope: Any, verdict: str) -> None:
    @pb.custom_gradient
    def f(x: Any) -> Any:
        y = jnp.asarray(np.sin(np.asarray(x)))
        return y, lambda dy: dy * slope(np.asarray(x))

    report = pb.check(f, X, seed=0, order=1)
    assert report.verdict == verdict
    assert "jit" not in report.capabilities or report.capabilities["jit"] == "refused"


def test_a_rule_that_is_another_one_while_it_is_traced_is_found() -> None:
    def slope(x: Any) -> Any:
        return jnp.cos(x) * (1.0 if isinstance(x, jax.core.Tracer) else 2.0)

    assert pb.check(rule(jnp.sin, slope), X, seed=0).verdict == "wrong"


def test_a_long_loop_that_is_unrolled_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LONGEST", 40)

    def made(length: int) -> Program:
        def run(sources: Any) -> list[Any]:
            (x,) = sources
            for _ in range(length):
                x = jnp.sin(x)
            return [x]

        def linear(sources: Any) -> Any:
            outputs, pull = jax.vjp(run, sources)
            return outputs, lambda cotangents: pull(cotangents)[0]

        return Program(run, linear, Steps())

    assert made(2).is_compiled([X])
    assert not made(30).is_compiled([X])


def test_a_step_by_step_run_rounds_like_the_body() -> None:
    def body(x: Any) -> Any:
        return (x * x + 1e8) - 1e8 - x * x  # nothing but rounding, which two programs do differently

    report = pb.check(rule(body, jnp.zeros_like), X, seed=0)
    assert "value-changed" not in report.causes


def newton(a: Any) -> Any:
    """Give a square root by a loop that JAX cannot pull back through."""

    def turn(state: Any) -> Any:
        x, i = state
        return 0.5 * (x + a / x), i + 1

    return jax.lax.while_loop(lambda state: state[1] < 40, turn, (jnp.ones_like(a), 0))[0]


def test_a_body_without_a_pullback_is_traced_and_not_run_for_every_question() -> None:
    calls = []

    def body(a: Any) -> Any:
        calls.append(a)
        return newton(a)

    report = pb.check(rule(body, lambda a: 0.5 / jnp.sqrt(a)), jnp.array([2.0, 3.0, 5.0]), seed=0)
    assert report.verdict == "right"
    assert len(calls) < report.forwards / 2
    assert sum(not isinstance(a, jax.core.Tracer) for a in calls) < 12


def test_a_factor_is_named_where_only_differences_measure() -> None:
    report = pb.check(rule(newton, lambda a: 1 / jnp.sqrt(a) / 3), jnp.array([2.0, 3.0, 5.0]), seed=0)
    assert report.causes == ["constant-factor"]
    assert "is 2/3 times the derivative" in str(report)


def another_jvp() -> Any:
    function = jax.custom_jvp(jnp.sin)
    function.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    return function


def another_vjp() -> Any:
    function = jax.custom_vjp(jnp.sin)
    function.defvjp(lambda x: (x, None), lambda _, dy: (dy,))
    return function


@pytest.mark.parametrize("make", [another_vjp, another_jvp])
def test_a_rule_with_another_value_where_it_is_differentiated_is_wrong(make: Any) -> None:
    report = pb.check(make(), X, seed=0, order=1)
    assert report.causes == ["value-changed"]
    assert "differentiated, the rule returns another value" in str(report)


def test_values_that_only_rounding_sets_apart_are_the_same() -> None:
    def chaos(x: Any, turn: Any) -> Any:
        for _ in range(90):
            x = turn(x)
        return x

    f = jax.custom_vjp(lambda x: chaos(x, lambda x: 3.9 * x * (1 - x)))
    f.defvjp(lambda x: (chaos(x, lambda x: 3.9 * (x - x * x)), x), lambda x, dy: (dy,))
    x = jnp.array([0.31, 0.47])
    assert abs(f(x) - jax.vjp(f, x)[0]).max() > 1e-3
    assert "value-changed" not in pb.check(f, x, seed=0, order=1).causes
    f.defvjp(lambda x: (1000 + x, x), lambda x, dy: (dy,))
    assert "value-changed" in pb.check(f, x, seed=0, order=1).causes


def test_what_a_check_compiled_is_gone_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: weakref.WeakSet[JaxAdapter] = weakref.WeakSet()
    start = JaxAdapter.__init__

    def started(self: JaxAdapter, *given: Any, **named: Any) -> None:
        made.add(self)
        start(self, *given, **named)

    monkeypatch.setattr(JaxAdapter, "__init__", started)
    pb.check(rule(jnp.sin, jnp.cos), X, seed=0)
    gc.collect()
    assert not made
