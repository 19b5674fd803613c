"""What a replaced gradient costs beside the native version that one would write by hand.

One step of a small network in a `tf.function` and under XLA, with the replacement between its layers; then
the time that `pb.override` adds to the first call of a MobileNetV2.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf
from side_by_side import floors, judge

import pullback as pb


def native(value, pull):
    """The hand-written version: `tf.custom_gradient` over the same formulas."""

    @tf.custom_gradient
    def function(x):
        return value(x), lambda dy: pull(dy, x)

    return function


def clip_each(dy):
    norm = tf.sqrt(tf.reduce_sum(dy * dy, 1, keepdims=True))
    return dy * 1e-2 / tf.maximum(norm, 1e-2)


def sigmoid_slope(dy, x):
    s = tf.sigmoid(4 * x)
    return dy * 4 * s * (1 - s)


def guided(dy, x):
    return tf.where((x > 0) & (dy > 0), dy, tf.zeros_like(dy))


same = tf.identity
# name → the hand-written version, and pullback's
PAIRS = {
    "with_gradient": (
        native(tf.sin, lambda dy, x: dy * tf.cos(x)),
        pb.with_gradient(tf.sin, lambda dy, x: dy * tf.cos(x)),
    ),
    "surrogate": (
        native(tf.round, lambda dy, x: dy * (1 - tf.tanh(x) ** 2)),
        pb.surrogate(tf.round, like=tf.tanh),
    ),
    "straight_through": (lambda x: x + tf.stop_gradient(tf.round(x) - x), pb.straight_through(tf.round)),
    "heaviside": (native(lambda x: tf.cast(x >= 0, x.dtype), sigmoid_slope), pb.heaviside),
    "scale_gradient": (native(same, lambda dy, x: 0.5 * dy), lambda x: pb.scale_gradient(x, 0.5)),
    "reverse_gradient": (native(same, lambda dy, x: -0.5 * dy), lambda x: pb.reverse_gradient(x, 0.5)),
    "clip_gradient by value": (
        native(same, lambda dy, x: tf.clip_by_value(dy, -1e-3, 1e-3)),
        lambda x: pb.clip_gradient(x, value=1e-3),
    ),
    "clip_gradient by norm": (
        native(same, lambda dy, x: tf.clip_by_norm(dy, 1e-2)),
        lambda x: pb.clip_gradient(x, norm=1e-2),
    ),
    "clip_gradient each example": (
        native(same, lambda dy, x: clip_each(dy)),
        lambda x: pb.clip_gradient(x, norm=1e-2, each="example"),
    ),
    "finite_gradient": (
        native(same, lambda dy, x: tf.where(tf.math.is_finite(dy), dy, tf.zeros_like(dy))),
        lambda x: pb.finite_gradient(x),
    ),
    "map_gradient": (native(same, lambda dy, x: tf.sign(dy)), lambda x: pb.map_gradient(x, tf.sign)),
    "override": (native(tf.nn.relu, guided), pb.override(lambda x: tf.nn.relu(x), {tf.nn.relu: guided})),
}


def network(middle, compiled):
    weights = [tf.Variable(tf.random.stateless_normal([128, 128], [k, 0]) / 11) for k in range(6)]
    x = tf.random.stateless_normal([128, 128], [9, 9])

    @tf.function(jit_compile=compiled)
    def step():
        with tf.GradientTape() as tape:
            y = x
            for w in weights:
                y = middle(y @ w)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, weights)

    return step


def steps() -> list[tuple[str, float, float]]:
    results = []
    for way, compiled in (("tf.function", False), ("XLA", True)):
        for name, (by_hand, ours) in PAIRS.items():
            arms = {"native": network(by_hand, compiled), "pullback": network(ours, compiled)}
            t = floors(arms, calls=8, rounds=60)
            print(f"{way} {name}: by hand {t['native']:.0f} µs, pullback {t['pullback']:.0f} µs", flush=True)
            results.append((f"{way} {name}: step / by hand", t["pullback"] / t["native"], 1.05))
    return results


def first_call(make) -> float:
    """Seconds of the first call, the fastest of three fresh functions."""
    image = tf.zeros([1, 96, 96, 3])
    best = float("inf")
    for _ in range(3):
        function = make()
        start = time.perf_counter()
        function(image)
        best = min(best, time.perf_counter() - start)
    return best


def mobilenet() -> list[tuple[str, float, float]]:
    model = keras.applications.MobileNetV2(weights=None, input_shape=(96, 96, 3))
    plain = first_call(lambda: tf.function(lambda x: model(x)))
    added = first_call(lambda: pb.override(model, {"Relu6": guided})) - plain
    print(f"MobileNetV2, first call: plain {plain:.2f} s, override adds {added:.2f} s")
    return [("override on MobileNetV2: seconds added", added, 1.0)]


if __name__ == "__main__":
    judge(steps() + mobilenet())
