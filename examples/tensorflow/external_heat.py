"""How do I train through a sparse solver, and recover a field from noisy measurements?

Heat flows along a rod: A(k)·u = q with A(k) = Dᵀ·diag(k)·D, k the conductivity of each cell. The solver is
SciPy's. Its adjoint is one more solve with the same matrix:
    A·λ = du        dk = −(D·λ) ⊙ (D·u), summed over the heat sources
TensorFlow's Adam finds the conductivity from temperatures that were measured with noise.
"""

import keras
import numpy as np
import scipy.sparse as sparse
import tensorflow as tf
from scipy.sparse.linalg import splu

import pullback as pb

CELLS = 24
NODES = CELLS - 1  # between the cells; the ends of the rod are kept at zero
D = sparse.diags([1.0, -1.0], [0, -1], shape=(CELLS, NODES), format="csc") * CELLS
SOURCES = np.eye(NODES)[:, ::4] * CELLS  # six places that are heated, one at a time


def factorised(k):
    """The sparse LU factors of the heat equation."""
    return splu((D.T @ sparse.diags(k) @ D).tocsc())


@pb.example(np.linspace(0.5, 1.5, CELLS))
@pb.external(output=lambda k: k.replace(shape=SOURCES.shape))
def temperature(k):
    """Temperatures at the nodes, a column for each source."""
    return factorised(k).solve(SOURCES)


@temperature.pullback
def adjoint(du, k, output):
    """Solve the adjoint equation: the matrix is symmetric."""
    adjoint_state = factorised(k).solve(du)
    return -((D @ adjoint_state) * (D @ output)).sum(axis=1)


def truth():
    """A rod with a bad conductor in the middle."""
    x = np.linspace(0, 1, CELLS)
    return 1.0 - 0.7 * np.exp(-(((x - 0.45) / 0.12) ** 2))


def recovered(measured, steps=300):
    """Fit log k by Adam; neighbours that differ cost a little."""
    log_k = tf.Variable(tf.zeros([CELLS], tf.float64))
    adam = keras.optimizers.Adam(0.05)
    for _ in range(steps):
        with tf.GradientTape() as tape:
            misfit = tf.reduce_mean((temperature(tf.exp(log_k)) - measured) ** 2) / NOISE**2
            loss = misfit + 0.1 * tf.reduce_sum((log_k[1:] - log_k[:-1]) ** 2)
        adam.apply_gradients([(tape.gradient(loss, log_k), log_k)])
    return np.exp(log_k)


NOISE = 1e-3

if __name__ == "__main__":
    exact = temperature(truth())
    found = recovered(exact + NOISE * np.random.default_rng(0).normal(size=exact.shape))
    print("true     ", np.round(truth()[::3], 2), "\nrecovered", np.round(found[::3], 2))
    error = np.linalg.norm(found - truth()) / np.linalg.norm(truth())
    print(f"relative error {error:.1%}")
    assert error < 0.05
