"""A body that opens a tape or an accumulator of its own gets derivatives from it, whoever records outside."""

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import pywrap_tfe

import pullback as pb

X = tf.constant([1.0, 2.0])
OTHER = tf.constant([3.0, 4.0])


def slope(x):
    """Differentiate x³ by a tape."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    return tape.gradient(y, x)


def curvature(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        inner = slope(x)
    return outer.gradient(inner, x) * x / 2


def pushed(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = x * x * x
    return accumulator.jvp(y)


def traced(x):
    return tf.function(slope)(x)


@pb.custom_gradient
def cube(x):
    def grad(dy):
        return 3 * x * x * dy

    return x * x * x, grad


def through_a_rule(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cube(x)
    return tape.gradient(y, x)


def rule_of(function):
    @pb.custom_gradient
    def f(x):
        y = function(x)

        def grad(dy):
            return 6 * x * dy

        return y, grad

    return f


def by_tape(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y, tape.gradient(y, x)


WAYS = [slope, curvature, pushed, traced, through_a_rule]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("calls", [1, 2])
def test_a_body_differentiates_inside(way, calls):
    f = rule_of(way)
    for _ in range(calls):
        y, dx = by_tape(f, X)
        assert np.allclose(y, 3 * X * X)
        assert np.allclose(dx, 6 * X)


def test_a_second_derivative_passes_through_the_inner_tape():
    with tf.GradientTape() as outer:
        outer.watch(X)
        _, dx = by_tape(rule_of(slope), X)
    assert np.allclose(outer.gradient(dx, X), 6.0)


def test_an_accumulator_outside_sees_the_rule():
    with tf.autodiff.ForwardAccumulator(X, tf.ones_like(X)) as accumulator:
        y = rule_of(slope)(X)
    assert np.allclose(y, 3 * X * X)
    assert np.allclose(accumulator.jvp(y), 6 * X)


def test_two_accumulators_outside_see_the_rule():
    ones = tf.ones_like(X)
    with tf.autodiff.ForwardAccumulator(X, ones) as outer:
        with tf.autodiff.ForwardAccumulator(X, ones) as inner:
            y = rule_of(slope)(X)
        tangent = inner.jvp(y)
    assert np.allclose(tangent, 6 * X)
    assert np.allclose(outer.jvp(tangent), 6.0)


def test_what_only_the_inner_tape_watches_is_not_captured():
    @pb.custom_gradient
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(OTHER)
            y = OTHER * OTHER
        factor = tape.gradient(y, OTHER)

        def grad(dy):
            return dy * factor

        return x * factor, grad

    y, dx = by_tape(f, X)
    assert np.allclose(y, X * 2 * OTHER)
    assert np.allclose(dx, 2 * OTHER)


def test_a_tensor_captured_inside_the_inner_tape_is_refused():
    def helper(x):
        return x * holder[0]

    @pb.custom_gradient
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = helper(x)
        factor = tape.gradient(y, x)

        def grad(dy):
            return dy * factor

        return y, grad

    w = tf.constant(2.0)
    holder = [w * 1.0]
    with tf.GradientTape() as tape:
        tape.watch(w)
        holder[0] = w * 3.0
        with pytest.raises(pb.errors.CapturedTensorError):
            f(X)


def test_a_body_that_fails_inside_its_tape_leaves_recording_as_it_was():
    def fail(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            raise ValueError("mine")

    with tf.GradientTape() as tape:
        tape.watch(X)
        with pytest.raises(ValueError, match="mine"):
            rule_of(fail)(X)
        y = X * X
    assert np.allclose(tape.gradient(y, X), 2 * X)


def test_the_outer_tape_keeps_nothing_of_the_inner_computation():
    kept = []

    def noted(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            middle = x * x
            kept.append(weakref.ref(middle))
            y = middle * x
        return tape.gradient(y, x)

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = rule_of(noted)(X)
        gc.collect()
        assert kept[-1]() is None
    assert np.allclose(tape.gradient(y, X), 6 * X)


def test_bodies_on_two_threads_may_end_in_any_order():
    """The one that began first ends first, and its tape opens while the other is inside."""
    inside, ended = threading.Event(), threading.Event()
    results = []

    def first(x):
        assert inside.wait(60)
        return slope(x)

    def second(x):
        inside.set()
        assert ended.wait(60)
        return slope(x)

    def other():
        results.append(by_tape(rule_of(second), X))

    before = {name: getattr(pywrap_tfe, name) for name in dir(pywrap_tfe)}
    thread = threading.Thread(target=other)

    def begun(x):
        thread.start()
        return first(x)

    results.append(by_tape(rule_of(begun), X))
    ended.set()
    thread.join(60)
    for y, dx in results:
        assert np.allclose(y, 3 * X * X)
        assert np.allclose(dx, 6 * X)
    assert len(results) == 2
    assert {name: getattr(pywrap_tfe, name) for name in before} == before
