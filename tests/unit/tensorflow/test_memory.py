"""Nothing is kept: not by eager steps, not by retraces, not on the tape beyond inputs and residuals."""

import gc
import weakref

import pytest
import tensorflow as tf
from leaks import gain

import pullback as pb
from pullback.hosts.tensorflow import graph


@pb.custom_gradient
def softplus(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def tensors_alive():
    gc.collect()
    # by type: asking objects of other frameworks for their class makes some of them warn
    return sum(issubclass(type(o), tf.__internal__.EagerTensor) for o in gc.get_objects())


def step(x, order=1):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = softplus(x)
        dx = tape.gradient(y, x)
    return dx if order == 1 else outer.gradient(dx, x)


@pytest.mark.parametrize("order", [1, 2])
def test_a_thousand_eager_steps_keep_nothing(order):
    x = tf.random.normal([10_000])

    def steps(count=1000):
        for _ in range(count):
            step(x, order)

    steps(50)
    before = tensors_alive()
    assert gain(steps, 8e6) < 8e6  # one kept tensor a step would be 40 MB
    assert tensors_alive() == before


def test_steps_on_large_arrays_keep_nothing():
    x = tf.random.normal([2**20])  # 4 MB

    def steps(count=200):
        for _ in range(count):
            step(x)

    steps(5)
    before = tensors_alive()
    assert gain(steps, 40e6) < 40e6  # one kept array a step would be 800 MB
    assert tensors_alive() == before


def test_rules_made_anew_in_every_step_keep_nothing():
    x = tf.random.normal([10_000])

    def once():
        @pb.custom_gradient
        def local(x):
            return x * 2, lambda dy: 2 * dy

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = local(x)
        return tape.gradient(y, x)

    def steps(count=500):
        for _ in range(count):
            once()

    steps(20)
    before = tensors_alive()
    assert gain(steps, 8e6) < 8e6
    assert tensors_alive() == before


def test_retraces_are_forgotten_with_their_graphs():
    graphs = []

    def retrace():
        @tf.function
        def run(x):
            graphs.append(weakref.ref(tf.compat.v1.get_default_graph()))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = softplus(x)
            return tape.gradient(y, x)

        run(tf.ones([3]))

    retrace()
    gc.collect()
    before = len(graph._gradients)
    registered = len(registry())
    for _ in range(50):
        retrace()
    gc.collect()
    assert sum(ref() is not None for ref in graphs) <= 1
    assert len(graph._gradients) <= before
    assert len(registry()) <= registered


def registry():
    from tensorflow.python.framework import ops

    return [name for name in ops.gradient_registry._registry if str(name).startswith("Pullback-")]


def test_the_tape_keeps_no_intermediate_of_the_body():
    alive = []

    @pb.custom_gradient
    def chain(x):
        y = x
        for _ in range(16):
            y = tf.sin(y)
            alive.append(weakref.ref(y))

        def grad(dy):
            return dy

        return y, grad

    x = tf.ones([10])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = chain(x)
        kept = [ref() for ref in alive if ref() is not None]
        assert len(kept) == 1  # the output, held by y itself
        assert kept[0] is y
    assert tape.gradient(y, x) is not None


def test_the_first_call_holds_no_more_tensors_at_once_than_the_next():
    alive, most = [], []

    @pb.custom_gradient
    def chain(x):
        y = x
        for _ in range(16):
            y = tf.sin(y)
            alive.append(weakref.ref(y))
            most[-1] = max(most[-1], sum(ref() is not None for ref in alive))

        def grad(dy):
            return dy

        return y, grad

    x = tf.ones([10])
    for _ in range(2):
        alive.clear()
        most.append(0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            chain(x)
    assert most == [1, 1]
