"""Each replacement on a value leaves the value alone, and its gradient is the closed form, everywhere."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-13}


def norm_of(dy, keep):
    axes = None if keep is None else tuple(a for a in range(dy.ndim) if a != keep % dy.ndim)
    return np.sqrt(np.sum(dy**2, axis=axes, keepdims=keep is not None))


def clipped(limit, keep=None):
    return lambda dy, x: dy * np.minimum(1, limit / np.maximum(norm_of(dy, keep), 1e-30))


def adaptive(limit, keep=None):
    def closed(dy, x):
        bound = limit * np.maximum(norm_of(x, keep), 1e-3)
        return dy * np.minimum(1, bound / np.maximum(norm_of(dy, keep), 1e-30))

    return closed


# name → the replacement, and what it does to a gradient, in NumPy
VALUES = {
    "scale": (lambda x: pb.scale_gradient(x, 0.25), lambda dy, x: 0.25 * dy),
    "scale by a tensor": (
        lambda x: pb.scale_gradient(x, tf.constant([2.0, -1.0, 0.5])),
        lambda dy, x: dy * np.array([2.0, -1.0, 0.5]),
    ),
    "reverse": (lambda x: pb.reverse_gradient(x, 0.3), lambda dy, x: -0.3 * dy),
    "reverse fully": (lambda x: pb.reverse_gradient(x), lambda dy, x: -dy),
    "reverse by a tensor": (lambda x: pb.reverse_gradient(x, tf.constant(2.0)), lambda dy, x: -2 * dy),
    "reverse on a schedule": (
        lambda x: pb.reverse_gradient(x, lambda: tf.constant(0.5)),
        lambda dy, x: -0.5 * dy,
    ),
    "clip by value": (lambda x: pb.clip_gradient(x, value=0.5), lambda dy, x: np.clip(dy, -0.5, 0.5)),
    "clip by a range": (
        lambda x: pb.clip_gradient(x, value=(-0.1, 0.6)),
        lambda dy, x: np.clip(dy, -0.1, 0.6),
    ),
    "clip by norm": (lambda x: pb.clip_gradient(x, norm=0.7), clipped(0.7)),
    "clip by a norm that is not reached": (lambda x: pb.clip_gradient(x, norm=1e4), lambda dy, x: dy),
    "clip each example": (lambda x: pb.clip_gradient(x, norm=0.7, each="example"), clipped(0.7, 0)),
    "clip each unit": (lambda x: pb.clip_gradient(x, norm=0.7, each="unit"), clipped(0.7, -1)),
    "clip adaptively": (lambda x: pb.clip_gradient(x, adaptive=0.1), adaptive(0.1)),
    "clip each unit adaptively": (
        lambda x: pb.clip_gradient(x, adaptive=0.1, each="unit"),
        adaptive(0.1, -1),
    ),
    "finite": (lambda x: pb.finite_gradient(x), lambda dy, x: np.where(np.isfinite(dy), dy, 0)),
    "map": (lambda x: pb.map_gradient(x, lambda dy: dy * dy), lambda dy, x: dy * dy),
}
X = np.array([[0.5, -1.25, 2.0], [0.0, 3.0, -0.75]])
DY = np.array([[0.25, -1.5, 0.75], [2.0, 0.0, -0.125]])


def agree(found, expected, dtype):
    np.testing.assert_allclose(
        np.asarray(tf.cast(found, tf.float64)), expected, rtol=TOLERANCE[dtype], atol=1e-30
    )


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gradient_is_the_closed_form(name, dtype, pull):
    replacement, closed = VALUES[name]
    x, dy = tf.constant(X, dtype), tf.constant(DY, dtype)
    y, (dx,) = pull(lambda x: replacement(x), [x], [dy])
    np.testing.assert_array_equal(y, x)
    assert dx.dtype == dtype
    agree(dx, closed(DY, X), dtype)


def test_a_norm_in_float16_does_not_overflow(pull):
    dy = tf.constant([3e4, 4e4], tf.float16)
    _, (dx,) = pull(lambda x: pb.clip_gradient(x, norm=1.0), [tf.zeros([2], tf.float16)], [dy])
    np.testing.assert_allclose(dx, [0.6, 0.8], rtol=1e-3)


def test_a_gradient_of_zero_is_clipped_to_zero(pull):
    _, (dx,) = pull(lambda x: pb.clip_gradient(x, norm=1.0), [tf.ones([3])], [tf.zeros([3])])
    np.testing.assert_array_equal(dx, [0, 0, 0])


def test_the_strength_of_a_reversal_may_change_from_step_to_step(wrap):
    step = tf.Variable(0.0, trainable=False)

    @wrap
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = pb.reverse_gradient(x, lambda: step / 10)
        return tape.gradient(y, x)

    for now in (1.0, 5.0):
        step.assign(now)
        np.testing.assert_allclose(slope(tf.ones([2])), [-now / 10] * 2, rtol=1e-6)


def test_the_factor_has_no_gradient(pull):
    x, factor = tf.ones([3]), tf.constant(2.0)
    _, (dx, dfactor) = pull(lambda x, factor: pb.scale_gradient(x, factor), [x, factor], [tf.ones([3])])
    np.testing.assert_array_equal(dx, [2, 2, 2])
    assert dfactor is None or float(dfactor) == 0


def test_a_stopped_value_is_a_constant(wrap):
    x = tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(lambda x: pb.stop_gradient(x, reason="a target") * x)(x)
    np.testing.assert_array_equal(tape.gradient(y, x), x)


# ── finite ───────────────────────────────────────────────────────────────────────────────────────────────

BAD = [np.nan, 1.0, np.inf, -np.inf]


def test_what_is_not_finite_becomes_zero_and_is_counted(pull):
    lost = tf.Variable(0, trainable=False, dtype=tf.int64)
    for calls in (1, 2):
        _, (dx,) = pull(lambda x: pb.finite_gradient(x, counter=lost), [tf.zeros([4])], [tf.constant(BAD)])
        np.testing.assert_array_equal(dx, [0, 1, 0, 0])
        assert int(lost) == 3 * calls


def test_without_a_counter_eager_mode_reports(capsys):
    x = tf.zeros([4])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pb.finite_gradient(x, label="the logits")
    tape.gradient(y, x, output_gradients=tf.constant(BAD))
    assert "the logits to zero: 3 of 4 values" in capsys.readouterr().err


def test_nothing_is_reported_when_all_is_finite(capsys):
    x = tf.zeros([4])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pb.finite_gradient(x)
    tape.gradient(y, x)
    assert capsys.readouterr().err == ""


# ── forbid ───────────────────────────────────────────────────────────────────────────────────────────────


def forbidden(x):
    return 2 * pb.forbid_gradient(x, reason="labels are no parameters")


def slope(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("compiled", [None, False, True])
def test_a_forbidden_derivative_raises_with_the_reason(compiled):
    run = slope if compiled is None else tf.function(slope, jit_compile=compiled)
    with pytest.raises(pb.errors.ForbiddenGradientError, match="labels are no parameters"):
        run(forbidden, tf.ones([2]))


def test_a_forbidden_derivative_from_outside_a_function_fails_with_the_reason():
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels are no parameters"):
        slope(tf.function(forbidden), tf.ones([2]))


def test_a_forbidden_derivative_is_nan_where_xla_drops_the_assertion():
    assert np.all(np.isnan(slope(tf.function(forbidden, jit_compile=True), tf.ones([2]))))


def test_what_nobody_differentiates_may_be_forbidden(wrap):
    x = tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, kept = wrap(lambda x: (x * x, pb.forbid_gradient(x)))(x)
    np.testing.assert_array_equal(kept, x)
    np.testing.assert_array_equal(tape.gradient(y, x), 2 * x)


def test_forward_mode_is_forbidden_too(wrap):
    x = tf.ones([2])
    f = wrap(lambda x: pb.forbid_gradient(x, reason="labels"))
    with (
        pytest.raises(pb.errors.ForbiddenGradientError, match="labels"),
        tf.autodiff.ForwardAccumulator(x, x),
    ):
        f(x)
