"""Named places in TensorFlow: the gradient that flows there is what the log has."""

import numpy as np
import pytest
import tensorflow as tf
from rows import FAR, LARGE, ODD, W, X, by_hand, expect, expect_sampled

import pullback as pb


def loss(x, w):
    h = tf.tanh(x @ w)
    return tf.reduce_sum(pb.watch(h, "hidden") ** 2)


def step(x, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = loss(x, w)
    return tape.gradient(value, w)


def outside(x, w):
    """A tape outside of what is traced."""
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = forward(x, w)
    return tape.gradient(value, w)


forward = tf.function(loss)
WAYS = {
    "eager": step,
    "tf.function": tf.function(step),
    "XLA": tf.function(step, jit_compile=True),
    "a tape outside": outside,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_is_heard_in_every_way_it_is_taken(way):
    x, w = tf.constant(X), tf.constant(W)
    with pb.watch() as log:
        found = WAYS[way](x, w)
    (record,) = log["hidden"]
    expect(record, by_hand(X, W))
    assert (record.step, log["hidden"].none) == (0, 0)
    true = X.T @ (by_hand(X, W) * (1 - np.tanh(X @ W) ** 2))
    np.testing.assert_allclose(found, true, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_each_nth_gradient_is_kept_and_what_is_traced_is_heard_by_each_log(way):
    x, w = tf.constant(X), tf.constant(W)
    WAYS[way](x, w)  # outside of any log
    for every, kept in ((3, [0, 3, 6]), (2, [0, 2, 4, 6]), (1, list(range(7)))):
        with pb.watch(every=every) as log:
            for factor in range(1, 8):
                WAYS[way](factor * x, w)
        WAYS[way](x, w)
        assert log["hidden"].of("step").tolist() == kept
        expect(log["hidden"][-1], by_hand(7 * X, W))


@pytest.mark.parametrize("way", WAYS)
def test_logs_inside_each_other(way):
    x, w = tf.constant(X), tf.constant(W)
    with pb.watch(every=3) as outer:
        WAYS[way](x, w)
        with pb.watch(every=2) as inner:
            for _ in range(3):
                WAYS[way](x, w)
        for _ in range(3):
            WAYS[way](x, w)
    assert outer["hidden"].of("step").tolist() == [0, 3, 6]
    assert inner["hidden"].of("step").tolist() == [0, 2]


@tf.function
def handed(gradient):
    x = tf.zeros_like(gradient)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pb.watch(x, "odd")
    return tape.gradient(y, x, output_gradients=gradient)


compiled = tf.function(handed.python_function, jit_compile=True)
ROWS = [(handed.python_function, dtype) for dtype in ("float32", "float64", "float16", "bfloat16")]


@pytest.mark.parametrize(("way", "dtype"), [*ROWS, (compiled, "float32")])
def test_every_number_of_a_row(way, dtype):
    gradient = tf.cast(tf.constant(ODD), dtype)
    with pb.watch() as log:
        way(gradient)
    expect(log["odd"][0], tf.cast(gradient, "float64" if dtype == "float64" else "float32"))


def test_complex_empty_looked_up_and_integer():
    with pb.watch() as log:
        handed(tf.constant([3 + 4j, -1j], tf.complex64))
        log.look(tf.zeros([0]), "empty")
        log.look(tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([1, 7])), "looked up")
        log.look({"a": tf.ones([2]), "b": [tf.ones([3]), None]}, "dict")
        whole = tf.range(3)
        assert pb.watch(whole, "whole") is whole
    expect(log["odd"][0], np.array([3 + 4j, -1j], np.complex64))
    assert log["empty"][0].size == 0
    assert log["looked up"][0].norm == 5.0
    assert {"dict.a", "dict.b[0]"} < set(log.names)
    assert "whole" not in log


def test_outside_of_a_log_the_tensor_itself_is_given():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        assert pb.watch(x, "nobody") is x


def test_a_place_in_a_loop_has_a_step_for_each_round():
    @tf.function
    def rounds(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = pb.watch(2 * y, "round")
        return tape.gradient(y, x)

    with pb.watch() as log:
        assert rounds(tf.constant(1.0)).numpy() == 8
    assert log["round"].of("norm").tolist() == [1, 2, 4]  # backward: the last round first


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_a_place_that_no_gradient_reaches_is_told(wrap):
    @wrap
    def lossy(w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            tf.stop_gradient(pb.watch(2 * w, "cut off"))
            value = tf.reduce_sum(pb.watch(w, "kept"))
        return tape.gradient(value, w)

    with pb.watch() as log:
        lossy(tf.constant(W))
        pb.watch(tf.constant(W), "not recorded")
    assert (log["cut off"].none, log["kept"].none) == (1, 0)
    assert "not recorded" not in log
    assert "cut off: no gradient arrived" in str(log)


def test_the_second_derivative_and_forward_mode_are_right():
    x = tf.constant([0.3, 0.7])

    def cubed(x):
        return tf.reduce_sum(pb.watch(x, "cubed") ** 3)

    with pb.watch(), tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cubed(x)
        dx = inner.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(dx, x), 6 * x, rtol=1e-6)
    with pb.watch() as log, tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = cubed(x)
    np.testing.assert_allclose(accumulator.jvp(y), tf.reduce_sum(3 * x**2), rtol=1e-6)
    assert len(log) == 0


def test_what_a_full_buffer_loses_is_said():
    x, w = tf.constant(X), tf.constant(W)
    with pb.watch() as log:
        for _ in range(260):
            WAYS["tf.function"](x, w)
    assert log["hidden"].of("step").tolist() == list(range(4, 260))
    assert "4 rows were overwritten" in log.table()


def test_a_saved_model_holds_nothing_of_it(tmp_path):
    class Saved(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([5, 3])])
        def __call__(self, x):
            return loss(x, tf.constant(W))

    module = Saved()
    with pb.watch() as log:
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = module(x)
        tape.gradient(value, x)
        tf.saved_model.save(module, str(tmp_path))
        loaded = tf.saved_model.load(str(tmp_path))
    assert len(log["hidden"]) == 1
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loaded(x)
    assert np.isfinite(tape.gradient(value, x)).all()


def test_the_decades_of_a_large_gradient_are_those_of_a_sample():
    with pb.watch() as log:
        log.look(tf.constant(LARGE), "large")
        tf.function(lambda: log.look(tf.constant(LARGE), "in a graph"))()
    expect_sampled(log)


def test_very_small_and_very_large_gradients_have_their_norms():
    for gradient in FAR:
        with pb.watch() as log:
            log.look(tf.constant(gradient), "far")
        for history in log:
            expect(history[0], gradient)
