"""How do I train through an assignment problem, whose solution is piecewise constant?

SciPy's `linear_sum_assignment` finds the cheapest pairing; its derivative is zero almost everywhere. The
Sinkhorn iteration is a smooth version of it, so the pairing takes that derivative: declared, and checked.
"""

import keras
import numpy as np
import tensorflow as tf
from scipy.optimize import linear_sum_assignment

import pullback as pb

SHARPNESS = 4.0


@pb.external(output=lambda cost: cost)
def cheapest(cost):
    """The cheapest pairing, as a matrix of zeros and ones."""
    rows, columns = linear_sum_assignment(cost)
    pairing = np.zeros_like(cost)
    pairing[rows, columns] = 1
    return pairing


def sinkhorn(cost):
    """Rows and columns that sum to one, in turns: for a sharpness without end, the cheapest pairing."""
    log = -SHARPNESS * cost
    for _ in range(10):
        log -= tf.reduce_logsumexp(log, 1, keepdims=True)
        log -= tf.reduce_logsumexp(log, 0, keepdims=True)
    return tf.exp(log)


pairing = pb.surrogate(cheapest, like=sinkhorn)


def learned(features, jobs, wanted, steps=150):
    """Learn what makes a worker good at a job, from pairings that went well."""
    weights = tf.Variable(tf.zeros([features.shape[1], jobs.shape[1]], tf.float64))
    adam = keras.optimizers.Adam(0.05)

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            cost = -features @ weights @ jobs.T
            loss = tf.reduce_sum((pairing(cost) - wanted) ** 2)
        return tape.gradient(loss, weights)

    for _ in range(steps):
        adam.apply_gradients([(gradient(), weights)])
    return weights


if __name__ == "__main__":
    rng = np.random.default_rng(3)
    features, jobs = rng.normal(size=(8, 3)), rng.normal(size=(8, 3))
    truth = rng.normal(size=(3, 3))
    wanted = cheapest(-features @ truth @ jobs.T)
    weights = learned(features, jobs, wanted)
    found = cheapest(-features @ weights.numpy() @ jobs.T)
    print(f"{int((found * wanted).sum())} of 8 workers have the job that suits them")
    assert (found * wanted).sum() >= 7
