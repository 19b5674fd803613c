"""What a log must say of a gradient, computed by NumPy."""

import numpy as np

from pullback.watching.record import SAMPLE, edges, stride


def expect(record, gradient, rtol=1e-5):
    """Compare a record with the gradient that it is of."""
    g = np.asarray(gradient)
    g = g.view(g.real.dtype) if np.iscomplexobj(g) else g
    finite = g[np.isfinite(g)].astype(float)
    if finite.size:
        found = [record.norm, record.min, record.max, record.mean]
        true = [np.sqrt((finite**2).sum()), finite.min(), finite.max(), finite.mean()]
        np.testing.assert_allclose(found, true, rtol=rtol, atol=1e-9 * np.abs(finite).max())
    part = g.ravel()[:: stride(g.size)]
    sizes = np.abs(part[np.isfinite(part) & (part != 0)].astype(float))
    decades = [int(((sizes >= low) & (sizes < high)).sum()) for low, high in edges()]
    assert record.size == g.size
    assert record.nan == np.isnan(g).sum()
    assert record.inf == np.isinf(g).sum()
    assert record.zero == (finite == 0).sum()
    assert list(record.decades) == decades


ODD = np.array(
    [0.0, 3e-14, 2e-12, 5e-7, -4e-3, 0.2, -7.0, 5e3, 2e9, np.nan, np.nan, np.inf, -np.inf], np.float32
)  # every kind of element, each end of the decades

LARGE = np.random.default_rng(0).lognormal(-7, 4, size=(300, 256)).astype(np.float32)  # more than is sampled
FAR = np.array([[1e-25, -2e-25], [3e25, 1e25]], np.float32)  # squares of these are 0 and infinite


# The same small network on every host: what comes to its hidden values is known.
W = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)


def by_hand(x, w):
    """Give the gradient of the sum of squares with respect to tanh(x @ w)."""
    return 2 * np.tanh(x @ w)


def expect_sampled(log):
    """Look for LARGE, of whose elements a part is counted by decades, at every place of a log."""
    for history in log:
        expect(history[0], LARGE, rtol=1e-4)
        assert SAMPLE // 2 < sum(history.decades) <= SAMPLE < LARGE.size
