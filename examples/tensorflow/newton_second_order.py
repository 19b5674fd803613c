"""How do I give the second derivative too, and use it?

`grad` may return `dx, gradgrad`, where `gradgrad(ddx)` is the cotangent of the inputs:
    f  = Σ eˣ − a·x        dx  = dy · (eˣ − a)        gradgrad(ddx) = ddx · dy · eˣ
Newton's method divides the first by the second.
"""

import numpy as np
import tensorflow as tf

import pullback as pb


@pb.custom_gradient
def energy(x, a):
    """Σ eˣ − a·x, smallest where eˣ = a."""
    e = tf.exp(x)

    def grad(dy):
        def gradgrad(ddx, dda):
            return dy * (ddx * e - dda), -dy * ddx

        return dy * (e - a), -dy * x, gradgrad

    return tf.reduce_sum(e - a * x), grad


def plain_energy(x, a):
    """The same, differentiated by TensorFlow."""
    return tf.reduce_sum(tf.exp(x) - a * x)


def slope_and_curvature(function, x, a):
    """The first derivative, and the diagonal of the second (the variables do not mix)."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            value = function(x, a)
        slope = inner.gradient(value, x)
    return slope, outer.gradient(slope, x)


@tf.function
def newton_step(x, a):
    """One step of Newton's method."""
    slope, curvature = slope_and_curvature(energy, x, a)
    return x - slope / curvature


if __name__ == "__main__":
    x, a = tf.constant([0.0, 0.5, 2.0]), tf.constant([2.0, 3.0, 5.0])
    found, expected = slope_and_curvature(energy, x, a), slope_and_curvature(plain_energy, x, a)
    for have, want in zip(found, expected):
        np.testing.assert_allclose(have, want, rtol=1e-6)
    print("slope", found[0].numpy(), "curvature", found[1].numpy())

    for step in range(6):
        x = newton_step(x, a)
        print(f"step {step + 1}: distance {float(tf.reduce_max(abs(x - tf.math.log(a)))):.1e}")
    np.testing.assert_allclose(x, np.log(a), atol=1e-6)
