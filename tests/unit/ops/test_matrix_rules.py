"""Rules of matrices where values repeat, or are no numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from asked import ASK

import pullback as pb

ops = pb.ops
RNG = np.random.default_rng(3)
G = RNG.normal(size=(4, 4))
POSITIVE = G @ G.T + np.eye(4)
DY = RNG.normal(size=(4, 4))


def projector(a):
    """Depends on the subspace of two eigenvalues, and not on the choice of vectors in it."""
    v = ops.eigh(a)[1][:, 1:]
    return v @ pb.namespace(v).matrix_transpose(v)


# cotangents of the vectors alone
DECOMPOSED = {
    ops.eigh: [np.zeros(3), DY[:3, :3]],
    ops.svd: [DY[:3, :3], np.zeros(3), DY[:3, :3].T],
}


@pytest.mark.parametrize("host", ASK)
def test_a_function_of_a_subspace_has_its_gradient_where_eigenvalues_repeat(host):
    q = np.linalg.qr(G[:3, :3])[0]
    a = q @ np.diag([1.0, 2.0, 2.0]) @ q.T
    dy = DY[:3, :3]
    (p,), (found,) = ASK[host](projector, [a], [dy])
    # dP = Σ vᵢvⱼᵀ(vᵢᵀ da vⱼ)/(wᵢ − wⱼ) over i inside, j outside, and its transpose
    inside, outside = q[:, 1:] @ q[:, 1:].T, q[:, :1] @ q[:, :1].T
    true = inside @ (dy + dy.T) @ outside / (2.0 - 1.0)
    np.testing.assert_allclose(p, inside, atol=1e-12)
    np.testing.assert_allclose(found, (true + true.T) / 2, atol=1e-9)


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("rule", [ops.eigh, ops.svd], ids=["eigh", "svd"])
def test_a_small_or_large_matrix_has_the_gradient_of_its_size(rule, host):
    """The vectors are those of any multiple, so their slope is that of a over the factor."""
    a = np.float32(G[:3, :3] + G[:3, :3].T)
    for factor in (np.float32(2.0**-100), np.float32(2.0**100)):
        _, (plain,) = ASK[host](rule, [a], DECOMPOSED[rule])
        _, (found,) = ASK[host](rule, [a * factor], DECOMPOSED[rule])
        np.testing.assert_allclose(found * factor, plain, rtol=1e-3, atol=1e-4 * np.abs(plain).max())


@pytest.mark.parametrize("host", ASK)
def test_a_matrix_of_nothing_has_a_decomposition_of_nothing(host):
    for rule, shape in ((ops.eigh, (0, 0)), (ops.svd, (0, 3)), (ops.svd, (3, 0))):
        _, (found,) = ASK[host](rule, [np.zeros(shape)])
        assert found.shape == shape


@pytest.mark.parametrize("host", ASK)
def test_decompositions_have_finite_gradients_where_values_repeat_or_vanish(host):
    for a in (np.eye(3), np.zeros([3, 3]), np.diag([2.0, 2.0, 0.0]), np.ones([3, 3])):
        for rule in (ops.eigh, ops.svd):
            ys, (found,) = ASK[host](rule, [a])
            assert all(np.isfinite(y).all() for y in ys)
            assert np.isfinite(found).all()
        _, (found,) = ASK[host](lambda x: ops.eigh(x)[0], [a])
        np.testing.assert_allclose(found, np.eye(3), atol=1e-12)  # Σ w is the trace
        _, (found,) = ASK[host](ops.matrix_sqrt, [a])
        assert np.isfinite(found).all()


@pytest.mark.parametrize("rule", [ops.eigh, ops.svd], ids=["eigh", "svd"])
@pytest.mark.parametrize("broadening", [1e-6, 1e-9, 0.0])
def test_the_second_order_of_decompositions_is_the_derivative_of_the_first(rule, broadening):
    def gradient(a, keep=False):
        ys = rule(a, broadening=broadening)
        total = sum((y * torch.cos(1.0 + torch.arange(y.numel()).reshape(y.shape))).sum() for y in ys)
        return torch.autograd.grad(total, a, create_graph=keep)[0]

    a = torch.tensor(POSITIVE, requires_grad=True)
    weights, u = torch.tensor(DY), torch.tensor(G)
    (found,) = torch.autograd.grad((gradient(a, keep=True) * weights).sum(), a)
    up, down = (gradient((a.detach() + t * u).requires_grad_()) for t in (1e-5, -1e-5))
    measured = ((up - down) / 2e-5 * weights).sum()
    np.testing.assert_allclose((found * u).sum(), measured, rtol=1e-7)


@pytest.mark.parametrize("host", ASK)
def test_decompositions_are_those_of_their_matrix_with_falling_or_rising_values(host):
    (w, v), _ = ASK[host](ops.eigh, [POSITIVE])
    np.testing.assert_allclose((v * w) @ v.T, POSITIVE, atol=1e-12)
    assert (np.diff(w) > 0).all()
    assert (np.take_along_axis(v, abs(v).argmax(0)[None], 0) > 0).all()
    for a in (G[:, :2], G[:2]):
        (u, s, vt), _ = ASK[host](ops.svd, [a])
        np.testing.assert_allclose((u * s) @ vt, a, atol=1e-12)
        assert (np.diff(s) < 0).all()


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("rule", [ops.cholesky, ops.logdet, lambda a: ops.solve(a, np.ones(2))], ids=range(3))
def test_a_singular_matrix_is_an_error_in_eager_mode(rule, host):
    with pytest.raises(Exception, match=r"(?i)singular|invertible|decomposition|positive"), jax.disable_jit():
        ASK[host](rule, [np.zeros([2, 2])])


def test_what_was_not_finite_before_is_no_error_of_a_matrix():
    a = jnp.array([[jnp.nan, 0.0], [0.0, 1.0]])
    assert np.isnan(ops.cholesky(a)).any()
    assert not np.isfinite(ops.solve(jnp.eye(2), jnp.array([jnp.inf, 1.0]))).all()
    assert np.isneginf(jax.jit(ops.logdet)(jnp.zeros([2, 2])))


def test_a_matrix_without_a_real_root_is_not_a_number_and_a_rounding_of_zero_is_one():
    assert np.isnan(ops.matrix_sqrt(np.diag([1.0, -1.0]))).any()
    rounded = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) / 7
    root = ops.matrix_sqrt(rounded)
    np.testing.assert_allclose(root @ root, rounded, atol=1e-7)
