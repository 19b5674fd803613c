"""Named places in JAX: the gradient that flows there is what the log has."""

import functools
import threading
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rows import FAR, LARGE, ODD, W, X, by_hand, expect, expect_sampled

import pullback as pb
from pullback.watching import jax as on_jax


def loss(w, x):
    h = jnp.tanh(x @ w)
    return jnp.sum(pb.watch(h, "hidden") ** 2)


WAYS = {
    "eager": jax.grad(loss),
    "jit": jax.jit(jax.grad(loss)),
    "jit inside": jax.grad(jax.jit(loss)),
    "checkpoint": jax.jit(jax.grad(jax.checkpoint(loss))),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_is_heard_in_every_way_it_is_taken(way):
    with pb.watch() as log:
        found = WAYS[way](W, X)
    (record,) = log["hidden"]
    expect(record, by_hand(X, W))
    assert (record.step, log["hidden"].none) == (0, 0)
    np.testing.assert_allclose(found, X.T @ (by_hand(X, W) * (1 - np.tanh(X @ W) ** 2)), rtol=1e-4)


@pytest.mark.parametrize("way", ["eager", "jit"])
def test_each_nth_gradient_is_kept_and_what_is_compiled_is_heard_by_each_log(way):
    WAYS[way](W, X)  # outside of any log
    for every, kept in ((3, [0, 3, 6]), (1, list(range(7)))):
        with pb.watch(every=every) as log:
            for factor in range(1, 8):
                WAYS[way](W, factor * X)
        WAYS[way](W, X)
        assert log["hidden"].of("step").tolist() == kept
        expect(log["hidden"][-1], by_hand(7 * X, W))


def test_logs_inside_each_other():
    with pb.watch(every=3) as outer:
        WAYS["jit"](W, X)
        with pb.watch(every=2) as inner:
            for _ in range(3):
                WAYS["jit"](W, X)
        for _ in range(3):
            WAYS["jit"](W, X)
    assert outer["hidden"].of("step").tolist() == [0, 3, 6]
    assert inner["hidden"].of("step").tolist() == [0, 2]


def test_outside_of_a_log_the_place_is_not_even_there():
    with pb.watch():
        inside = str(jax.make_jaxpr(jax.grad(loss))(W, X))
    outside = str(jax.make_jaxpr(jax.grad(loss))(W, X))
    assert "look_at_gradient" in inside
    assert "watched" not in outside
    assert "look" not in outside


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_batch_of_gradients_is_one_record(wrap):
    xs = np.stack([X, 2 * X])
    with pb.watch() as log:
        wrap(jax.vmap(jax.grad(loss), (None, 0)))(W, xs)
    (record,) = log["hidden"]
    expect(record, by_hand(xs, W))


def test_a_place_in_a_scan_has_a_step_for_each_round():
    def rounds(x):
        return jax.lax.scan(lambda y, _: (pb.watch(2 * y, "round"), None), x, None, length=3)[0]

    with pb.watch() as log:
        assert jax.jit(jax.grad(rounds))(1.0) == 8
    assert log["round"].of("norm").tolist() == [1, 2, 4]  # backward: the last round first


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_number_of_a_row(dtype, wrap):
    gradient = jnp.asarray(ODD).astype(dtype)

    @wrap
    def handed(gradient):
        return jax.vjp(lambda x: pb.watch(x, "odd"), jnp.zeros_like(gradient))[1](gradient)

    with pb.watch() as log:
        handed(gradient)
    expect(log["odd"][0], gradient.astype("float32"))


class Pair(NamedTuple):
    left: object
    right: object


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array


def test_gradients_at_hand_by_their_paths():
    layer = Linear(jnp.asarray(W), jnp.asarray(X[0]))

    def fit(layer):
        return jnp.sum((layer.weight @ X[1] + layer.bias) ** 2)

    with pb.watch() as log:
        grads = jax.jit(lambda layer: log.look(jax.grad(fit)(layer), "linear"))(layer)
        log.look(Pair({"w": jnp.ones(2)}, [jnp.ones(2), None, jnp.arange(2)]), "pair")
        log.look(jnp.array([3.0, 4.0]), "alone")
    expect(log["linear.weight"][0], grads.weight)
    expect(log["linear.bias"][0], grads.bias)
    assert {"pair.left.w", "pair.right[0]"} < set(log.names)
    assert not {"pair.right[1]", "pair.right[2]"} & set(log.names)
    assert log["alone"][0].norm == 5


def test_where_no_array_can_be_handed_over_the_program_asks_first(monkeypatch):
    """On a GPU the numbers are computed there, and only if they are wanted."""
    monkeypatch.setattr(on_jax, "HANDS_OVER", False)

    @jax.jit
    def batch(w, xs):
        return jax.vmap(jax.grad(lambda w, x: loss(w, x)), (None, 0))(w, xs)

    xs = np.stack([X, 2 * X])
    with pb.watch(every=2) as log:
        for factor in (1, 2, 3):
            batch(W, factor * xs)
    assert log["hidden"].of("step").tolist() == [0, 2]
    expect(log["hidden"][0], by_hand(xs, W))
    expect(log["hidden"][1], by_hand(3 * xs, W))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_place_that_no_gradient_reaches_is_told(wrap):
    def lossy(w):
        jax.lax.stop_gradient(pb.watch(2 * w, "cut off"))
        return jnp.sum(pb.watch(w, "kept"))

    with pb.watch() as log:
        wrap(jax.grad(lossy))(W)
        pb.watch(jnp.asarray(W), "not differentiated")
    assert (log["cut off"].none, log["kept"].none) == (1, 0)
    assert "not differentiated" not in log


def test_the_second_derivative_and_forward_mode_are_right():
    def cubed(x):
        return jnp.sum(pb.watch(x, "cubed") ** 3)

    x = np.array([0.3, 0.7], np.float32)
    with pb.watch() as log:
        pushed = jax.jit(lambda x: jax.jvp(cubed, (x,), (x,))[1])(x)
    np.testing.assert_allclose(pushed, 3 * np.sum(x**3), rtol=1e-6)
    assert "cubed" not in log
    with pb.watch():
        for second in (jax.hessian(cubed), jax.jacrev(jax.grad(cubed)), jax.jacfwd(jax.jacfwd(cubed))):
            np.testing.assert_allclose(jax.jit(second)(x), np.diag(6 * x), rtol=1e-6)


def test_training_on_another_thread_is_heard():
    with pb.watch() as log:
        thread = threading.Thread(target=lambda: jax.block_until_ready(WAYS["jit"](W, X)))
        thread.start()
        thread.join()
    assert len(log["hidden"]) == 1


def test_whole_numbers_pass():
    whole = jnp.arange(3)
    with pb.watch():
        assert pb.watch(whole, "whole") is whole


def test_a_structure_of_parameters_is_refused_in_words():
    with pytest.raises(pb.errors.UnsupportedInputError, match=r"log\.look"), pb.watch({"w": W}):
        pass


def test_the_decades_of_a_large_gradient_are_those_of_a_sample():
    with pb.watch() as log:
        log.look(jnp.asarray(LARGE), "large")
        jax.jit(lambda g: log.look(g, "in a graph"))(LARGE)
    expect_sampled(log)


def test_very_small_and_very_large_gradients_have_their_norms():
    for gradient in FAR:
        with pb.watch() as log:
            log.look(jnp.asarray(gradient), "far")
            jax.jit(lambda g: log.look(g, "in a graph"))(gradient)
        for history in log:
            expect(history[0], gradient)


# ── one question for places that run together ────────────────────────────────────────────────────────────


def chain(x, count):
    for i in range(count):
        x = pb.watch(2 * x, f"link {i}")
    return jnp.sum(x)


def test_a_compiled_program_asks_once_for_all_places_that_run_together():
    step = jax.jit(jax.grad(functools.partial(chain, count=40)))
    with pb.watch(every=2) as log:
        text = step.lower(X).as_text()
        for _ in range(3):
            step(X)
    assert text.count(on_jax.MARK) == 2  # an answer has 32 bits
    assert [log[f"link {i}"].of("step").tolist() for i in range(40)] == [[0, 2]] * 40
    assert [log[f"link {i}"][0].max for i in range(40)] == [2.0 ** (39 - i) for i in range(40)]


def test_the_same_place_twice_in_a_program_keeps_its_numbers_apart():
    @jax.jit
    def twice(x):
        return jax.grad(lambda x: jnp.sum(pb.watch(3 * pb.watch(x, "twice"), "twice")))(x)

    with pb.watch() as log:
        twice(X)
        twice(X)
    assert sorted(log["twice"].of("max").tolist()) == [1, 1, 3, 3]
    assert log["twice"].of("step").tolist() == [0, 1, 2, 3]


def test_what_runs_apart_is_asked_for_apart():
    """A round of a loop, a branch that may not run, and a function that is called twice."""

    def inner(x):
        return pb.watch(2 * x, "called")

    def parts(x):
        x = jax.lax.scan(lambda y, _: (pb.watch(2 * y, "round"), None), x, None, length=3)[0]
        x = jax.lax.cond(x[0] > 0, lambda y: pb.watch(y, "ran"), lambda y: pb.watch(y, "did not"), x)
        return jnp.sum(jax.jit(inner)(jax.jit(inner)(pb.watch(x, "outside"))))

    step = jax.jit(jax.grad(parts))
    with pb.watch(every=3) as log:
        for _ in range(3):
            step(jnp.ones(2))
    assert log["outside"].of("step").tolist() == [0]
    assert log["round"].of("step").tolist() == [0, 3, 6]
    assert log["called"].of("step").tolist() == [0, 3]
    assert log["ran"].of("step").tolist() == [0]
    assert "did not" not in log or not len(log["did not"])
