"""At the edges of its domain a rule gives the value and the slope that its file says, on every host."""

import numpy as np
import pytest
import tensorflow as tf
import torch
from asked import ASK

import pullback as pb

INF, NAN = np.inf, np.nan
ops = pb.ops
HALF, LOG2 = np.sqrt(0.5), np.log(2)
TINY = -np.log(np.finfo(np.float32).smallest_normal) - 1  # the slope of an entropy at 0
# the rule, a row, its value, and the slope of the sum of its outputs
EDGES = [
    ("softmax", [-INF, -INF], [0, 0], [0, 0]),
    ("softmax", [INF, 1], [1, 0], [0, 0]),
    ("softmax", [INF, INF, -INF], [0.5, 0.5, 0], [0, 0, 0]),
    ("softmax", [-INF, 3], [0, 1], [0, 0]),
    ("softmax", [NAN, 1], [NAN, NAN], [NAN, NAN]),
    ("softmax", [NAN, INF], [NAN, NAN], [NAN, NAN]),
    ("softmax", [], [], []),
    ("log_softmax", [-INF, -INF], [-INF, -INF], [1, 1]),
    ("log_softmax", [INF, 1], [0, -INF], [-1, 1]),
    ("log_softmax", [-INF, 3], [-INF, 0], [1, -1]),
    ("log_softmax", [], [], []),
    ("logsumexp", [-INF, -INF], -INF, [0, 0]),
    ("logsumexp", [INF, 1], INF, [1, 0]),
    ("logsumexp", [NAN, INF], NAN, [NAN, NAN]),
    ("logsumexp", [], -INF, []),
    ("normalize", [0, 0], [0, 0], [0, 0]),
    ("normalize", [-INF, INF], [-HALF, HALF], [0, 0]),
    ("normalize", [NAN, 1], [NAN, NAN], [NAN, NAN]),
    ("normalize", [], [], []),
    ("safe_norm", [0, 0], 0, [0, 0]),
    ("safe_norm", [INF, 1], INF, [1, 0]),
    ("safe_norm", [NAN, INF], NAN, [NAN, NAN]),
    ("safe_norm", [], 0, []),
    ("entropy", [0, 1], 0, [TINY, -1]),
    ("entropy", [], 0, []),
    ("entropy_from_logits", [-INF, -INF], 0, [0, 0]),
    ("entropy_from_logits", [INF, INF, -INF], LOG2, [0, 0, 0]),
    ("entropy_from_logits", [NAN, 1], NAN, [NAN, NAN]),
    ("prod", [0, 0], 0, [0, 0]),
    ("prod", [0, 3], 0, [3, 0]),
    ("prod", [], 1, []),
    ("cumprod", [2, 0, 3], [2, 0, 0], [1, 8, 0]),
    ("prod", [[], [], []], 1, [[], [], []]),
    ("cumprod", [], [], []),
    ("sort", [], [], []),
    ("sort", [[], []], [[], []], [[], []]),
    ("rms_norm", [0, 0], [0, 0], [1e3, 1e3]),
    ("layer_norm", [7, 7], [0, 0], [0, 0]),
]


@pytest.mark.parametrize("host", ASK)
def test_a_rule_has_the_value_and_the_slope_that_its_file_says(host):
    for name, row, value, slope in EDGES:
        rule = getattr(ops, name)
        (y,), (dx,) = ASK[host](rule, [np.array(row, np.float32)])
        np.testing.assert_allclose(y, value, rtol=1e-6, err_msg=f"{name} at {row}")
        np.testing.assert_allclose(dx, slope, rtol=1e-6, atol=1e-6, err_msg=f"{name} at {row}")


@pytest.mark.parametrize("name", sorted({name for name, *_ in EDGES}))
def test_numpy_has_the_same_values_and_no_warning(name):
    for rule, row, value, _ in EDGES:
        if rule == name:
            np.testing.assert_allclose(getattr(ops, name)(np.array(row, float)), value, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("host", ASK)
def test_divergences_and_labels_at_their_edges(host):
    p, q = np.float32([0, 0.5, 0.5]), np.float32([0, 0, 1])
    (y,), (dp, dq) = ASK[host](ops.kl_divergence, [p, q])
    assert y == INF
    assert np.isfinite(dp).all()
    assert np.isfinite(dq).all()
    assert dq[0] == 0
    (y,), (dp, dq) = ASK[host](ops.kl_divergence, [p[:1], q[:1]])
    assert y == 0
    logits, labels = np.float32([[1, -INF, 2]] * 3), np.array([1, -1, 3])
    loss = ops.categorical_cross_entropy_from_logits
    (y,), (dx, *_) = ASK[host](lambda x: loss(x, labels), [logits])
    assert y.tolist() == [INF, 0, 0]  # a class that is none is no label
    assert np.isfinite(dx).all()
    assert not dx[1:].any()
    dense = np.float32([[0.5, 0, 0.5]])
    (y,), _ = ASK[host](lambda x: loss(x, dense), [logits[:1]])
    assert np.isfinite(y)  # no label on the −∞


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("name", ["logsumexp", "safe_norm", "softmax", "rms_norm", "layer_norm"])
def test_a_sum_that_leaves_the_range_of_float16_does_not_overflow(name, host):
    x = np.float16([300, -200, 250])  # squares are beyond 65504, and so is e^12
    (y,), (dx,) = ASK[host](getattr(ops, name), [x])
    wide, (slope,) = ASK[host](getattr(ops, name), [x.astype(np.float64)])
    np.testing.assert_allclose(y, wide[0], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(dx, slope, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("host", ASK)
def test_second_orders_of_products_are_right_at_any_number_of_zeros(host):
    """Of Π x the second derivative is the product of the others: at [0, 0, 3, 2] one pair has 6."""
    for zeros, pairs in (
        ([0, 0, 3, 2], {(0, 1): 6.0}),
        ([0, 0, 0, 2], {}),
        ([5, 0, 3, 2], {(0, 1): 6.0, (1, 2): 10.0, (1, 3): 15.0}),
    ):
        x, true = np.float64(zeros), np.zeros([4, 4])
        for (i, j), value in pairs.items():
            true[i, j] = true[j, i] = value
        hessian = SECOND[host](lambda x: ops.prod(x), x)
        np.testing.assert_allclose(hessian, true, atol=1e-12)
        last = SECOND[host](lambda x: ops.cumprod(x)[-1], x)
        np.testing.assert_allclose(last, true, atol=1e-12)


def _second_tensorflow(f, x):
    x = tf.constant(x)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        rows = tf.unstack(tape.gradient(y, x))
    return np.array([outer.gradient(row, x).numpy() for row in rows])


def _second_jax(f, x):
    import jax

    with jax.enable_x64(True):
        return np.asarray(jax.hessian(f)(jax.numpy.asarray(x)))


def _second_torch(f, x):
    import torch

    return torch.autograd.functional.hessian(f, torch.tensor(x)).numpy()


SECOND = {"tensorflow": _second_tensorflow, "jax": _second_jax, "torch": _second_torch}


REFUSED = [
    (lambda: ops.softmax(np.arange(3)), "NoTensorError|UnsupportedInputError", "int64"),
    (lambda: ops.logsumexp(np.ones(3), axis=2), "OptionError", "axis=2"),
    (lambda: ops.median(np.ones([2, 3]), axis=(0, 1)), "OptionError", r"axis=\(0, 1\)"),
    (lambda: ops.safe_norm(np.ones(3) * 1j), "UnsupportedInputError", "complex128"),
    (lambda: ops.prod(np.ones([2, 3]), axis=(0, -2)), "OptionError", "each axis once"),
    (lambda: ops.gelu(np.ones(3), approximate="erf"), "OptionError", "'none', 'tanh'"),
    (lambda: ops.gelu(torch.arange(3)), "UnsupportedInputError", "int64"),
    (lambda: ops.layer_norm(torch.ones(3, dtype=torch.bool)), "UnsupportedInputError", "bool"),
    (lambda: ops.batch_norm(torch.ones(2, 3) * 1j), "UnsupportedInputError", "complex64"),
    (lambda: ops.swiglu(torch.arange(3), torch.arange(3)), "UnsupportedInputError", "int64"),
    (lambda: ops.geglu(torch.ones(3), 0.5), "UnsupportedInputError", "a float"),
    (lambda: ops.geglu(torch.ones(3), torch.ones(3), approximate="erf"), "OptionError", "'none', 'tanh'"),
    (lambda: ops.layer_norm([[1.0, 2.0]]), "UnsupportedInputError", "a list"),
    (lambda: ops.kl_divergence(np.ones(3), 0.5), "UnsupportedInputError", "a float"),
    (lambda: ops.svd(np.full([2, 2], np.inf)), "UnsupportedInputError", "infinities"),
    (lambda: ops.cholesky(np.ones([2, 3])), "UnsupportedInputError", r"\(2, 3\)"),
    (lambda: ops.logdet(np.ones(3)), "UnsupportedInputError", "square matrices"),
    (lambda: ops.eigh(np.eye(2), broadening=-1.0), "OptionError", "broadening=-1.0"),
    (lambda: ops.layer_norm(np.ones(3), eps=-1.0), "OptionError", "eps=-1.0"),
    (
        lambda: ops.categorical_cross_entropy_from_logits(np.ones([2, 3]), np.array([0, 1]), axis=None),
        "OptionError",
        "axis=None",
    ),
    (
        lambda: ops.categorical_cross_entropy_from_logits(np.ones([2, 3]), np.array([0, 1, 2])),
        "UnsupportedInputError",
        r"classes in shape \(2,\)",
    ),
    (
        lambda: tf.function(ops.prod, input_signature=[tf.TensorSpec([None], tf.float32)])(tf.ones(3)),
        "OptionError",
        "unknown length",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_is_refused_in_words(call, kind, text):
    with pytest.raises(pb.errors.PullbackError, match=text) as caught:
        call()
    assert type(caught.value).__name__ in kind
