"""The kernel for GPUs in JAX, interpreted, and the way that leads to it, on a processor."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.ops.linear import jax as kernels
from pullback.ops.linear import pallas
from pullback.ops.linear.accumulated import loss_and_slopes

RNG = np.random.default_rng(11)
N, D, V = 12, 8, 40
LABELS = jnp.asarray(RNG.integers(0, V, N))
OPTIONS = {
    "plain": {"cap": None, "smoothing": 0.0, "z_loss": 0.0},
    "all": {"cap": 2.0, "smoothing": 0.1, "z_loss": 0.01},
    "smoothing": {"cap": None, "smoothing": 0.2, "z_loss": 0.0},
    "z-loss": {"cap": None, "smoothing": 0.0, "z_loss": 0.3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("shape", [(5, 23), (3, 1), (2, pallas.BLOCK + 9)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_kernel_gives_loss_and_slopes_of_each_row(shape, options, dtype):
    z = jnp.asarray(3 * RNG.normal(size=shape), dtype)
    labels = jnp.asarray(RNG.integers(0, shape[1], shape[0]))
    losses, slopes = pallas.loss_and_slopes(z, labels, interpret=True, **options)
    expected, (g,), scale, _ = loss_and_slopes(kernels, [z], labels, [0], **options)
    np.testing.assert_allclose(losses, expected, rtol=2e-6, atol=2e-6)
    g = g if scale is None else g / scale[:, None]
    assert slopes.dtype == z.dtype
    digits = 2e-6 if dtype == "float32" else 4e-3
    found, g = np.asarray(slopes, np.float64), np.asarray(g, np.float64)
    np.testing.assert_allclose(found, g, rtol=2 * digits, atol=digits)


def test_classes_that_are_out_and_labels_outside_have_the_loss_of_the_plain_way():
    z = jnp.array([[0.5, -jnp.inf, 1.0], [0.5, -jnp.inf, 1.0], [1.0, 2.0, 3.0]], jnp.float32)
    losses, slopes = pallas.loss_and_slopes(z, jnp.array([2, 1, 7]), interpret=True, **OPTIONS["plain"])
    assert losses[0] == pytest.approx(np.log1p(np.exp(-0.5)))
    assert losses[1] == np.inf
    assert slopes[0, 1] == 0
    assert slopes[0].sum() == pytest.approx(0, abs=1e-6)
    assert np.isfinite(losses[2])


@pytest.fixture
def on_gpu(monkeypatch):
    """Take the way of a GPU; the program then runs on a processor, where the plain way stands behind it."""
    monkeypatch.setattr(kernels, "_has_kernels", lambda: True)


def drawn():
    keys = jax.random.split(jax.random.key(2), 4)
    sizes = [(N, D), (V, D)] * 2
    return [jax.random.normal(key, size, jnp.bfloat16) for key, size in zip(keys, sizes)]


def loss(x, w, **options):
    return pb.ops.linear_cross_entropy(x, w, LABELS, chunk=5, **options)


def plain(x, w):
    z = x.astype(jnp.float32) @ w.astype(jnp.float32).T
    return jnp.mean(jax.nn.logsumexp(z, 1) - jnp.take_along_axis(z, LABELS[:, None], 1)[:, 0])


def close(found, expected, rtol):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert np.abs(a - b).max() <= rtol * np.abs(b).max()


def test_the_way_of_a_gpu_has_the_plain_loss_and_derivatives(on_gpu):
    x, w, dx, dw = drawn()

    def second(f):
        return lambda x, w: jax.grad(lambda x, w: jnp.vdot(jax.grad(f)(x, w), dx), (0, 1))(x, w)

    def pushed(f):
        return lambda x, w: jax.jvp(f, (x, w), (dx, dw))[1]

    value, gradients = jax.jit(jax.value_and_grad(plain, (0, 1)))(x, w)
    close(jax.jit(jax.value_and_grad(loss, (0, 1)))(x, w), (value, gradients), 0.02)
    close(jax.value_and_grad(loss, (0, 1))(x, w), (value, gradients), 0.02)
    terms = sum(np.abs(np.float32(g) * np.float32(t)).sum() for g, t in zip(gradients, (dx, dw)))
    tangents = [jax.jit(pushed(f))(x, w) for f in (loss, plain)]
    assert abs(tangents[0] - tangents[1]) <= 0.004 * terms  # roundings of bfloat16
    close(jax.jit(second(loss))(x, w), jax.jit(second(plain))(x, w), 0.05)


def test_the_way_of_a_gpu_goes_over_a_batch(on_gpu):
    x, w, other, _ = drawn()
    xs = jnp.stack([x, other])
    found = jax.jit(jax.vmap(jax.grad(loss), (0, None)))(xs, w)
    close(found, jnp.stack([jax.jit(jax.grad(plain))(x, w) for x in xs]), 0.02)


def test_no_tokens_ask_no_kernel(on_gpu, monkeypatch):
    monkeypatch.setattr(kernels, "in_one", None)
    w = drawn()[1]
    x, labels = jnp.zeros((0, D), w.dtype), jnp.zeros(0, int)
    value, dw = jax.value_and_grad(lambda w: pb.ops.linear_cross_entropy(x, w, labels))(w)
    assert value == 0
    assert not dw.any()


def test_a_program_that_wants_the_value_alone_has_one_product(on_gpu):
    x, w, *_ = drawn()

    def products(f):
        text = jax.jit(f).lower(x, w).compile().as_text()
        return text.count(" dot(") + text.count("dot_general(")

    whole = lambda x, w: pb.ops.linear_cross_entropy(x, w, LABELS, chunk=N)  # noqa: E731
    assert (products(whole), products(jax.grad(whole, (0, 1)))) == (1, 3)


def test_another_jax_without_the_kernel_goes_the_plain_way(monkeypatch):
    class Gpu:
        compute_capability = "9.0"

    w = drawn()[1]
    monkeypatch.setattr(jax, "devices", lambda: [Gpu()])
    assert kernels.adds_in_place(w)
    monkeypatch.setattr(kernels, "_kernels", lambda: None)
    assert not kernels.adds_in_place(w)
    monkeypatch.undo()
    monkeypatch.setattr(jax, "devices", lambda: [Gpu(), Gpu()])
    assert not kernels.adds_in_place(w)
