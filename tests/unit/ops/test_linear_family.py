"""The other losses without logits are the plain ones: distillation, log-probabilities, contrastive pairs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import torch
from linear_hosts import EAGER, close, value_and_gradients

import pullback as pb
from pullback.errors import InputError, OptionError

RNG = np.random.default_rng(5)
N, D, E, V = 6, 4, 3, 11
X, W, B = RNG.normal(size=(N, D)), RNG.normal(size=(V, D)), RNG.normal(size=V)
TX, TW, TB = RNG.normal(size=(N, E)), RNG.normal(size=(V, E)), RNG.normal(size=V)
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0, 1.0, 3.0])
LABELS = np.array([0, 10, -100, 4, 4, 7])

KL = pb.ops.linear_kl_divergence
JS = pb.ops.linear_js_divergence


def plain(kind, x, w, b, beta=0.5, temperature=1.0):
    """Give the weighted mean of a divergence with all logits held, by PyTorch, and its gradients."""
    tensors = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]
    u = torch.log_softmax((tensors[0] @ tensors[1].T + tensors[2]) / temperature, 1)
    v = torch.log_softmax((torch.tensor(TX) @ torch.tensor(TW).T + torch.tensor(TB)) / temperature, 1)
    m = torch.logaddexp(v + np.log(beta), u + np.log(1 - beta))
    apart = {
        "forward": lambda: v.exp() * (v - u),
        "reverse": lambda: u.exp() * (u - v),
        "js": lambda: beta * v.exp() * (v - m) + (1 - beta) * u.exp() * (u - m),
    }[kind]().sum(1)
    value = (torch.tensor(WEIGHTS) * apart).sum() / WEIGHTS.sum()
    return value.item(), torch.autograd.grad(value, tensors)


WAYS = {
    "forward": (KL, {"direction": "forward", "temperature": 2.0}, {"temperature": 2.0}),
    "reverse": (KL, {"direction": "reverse"}, {}),
    "js": (JS, {"beta": 0.3}, {"beta": 0.3}),
}


@pytest.mark.parametrize("mode", [*EAGER, "tensorflow xla", "jax jit"])
@pytest.mark.parametrize("kind", WAYS)
def test_a_divergence_is_the_plain_one(kind, mode):
    function, options, meant = WAYS[kind]

    def loss(x, w, b):
        return function(x, w, TX, TW, bias=b, teacher_bias=TB, weights=WEIGHTS, chunk=4, **options)

    value, gradients = value_and_gradients(mode, loss, (X, W, B))
    expected, slopes = plain(kind, X, W, B, **meant)
    close([value, *gradients], [expected, *slopes], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", WAYS)
def test_a_divergence_has_a_second_derivative(kind):
    function, options, _ = WAYS[kind]
    tensors = [torch.tensor(a, requires_grad=True) for a in (X, W)]
    rest = [torch.tensor(a) for a in (TX, TW)]
    assert torch.autograd.gradgradcheck(lambda x, w: function(x, w, *rest, chunk=4, **options), tensors)


def test_a_teacher_is_a_constant():
    teacher = [torch.tensor(a, requires_grad=True) for a in (TX, TW)]
    value = KL(torch.tensor(X, requires_grad=True), torch.tensor(W), *teacher)
    assert torch.autograd.grad(value, teacher, allow_unused=True) == (None, None)


@pytest.mark.parametrize("loss", [KL, JS])
def test_the_checker_finds_the_gradient_of_the_student_right(loss):
    teacher = torch.tensor(TX), torch.tensor(TW)
    report = pb.check(
        lambda x, w: loss(x, w, *teacher),
        torch.tensor(X),
        torch.tensor(W),
        seed=1,
        own_points=False,
        export=False,
    )
    assert report.verdict == "right", report


def test_a_class_that_both_leave_out_adds_nothing():
    out = np.where(np.arange(V) == 3, -np.inf, 0.0)
    for function, options, _ in WAYS.values():
        whole = function(X, W, TX, TW, bias=out, teacher_bias=out, chunk=4, **options)
        kept = np.arange(V) != 3
        np.testing.assert_allclose(whole, function(X, W[kept], TX, TW[kept], **options), rtol=1e-12)


def test_the_same_model_is_not_apart():
    for function, options, _ in WAYS.values():
        apart = function(X, W, X, W, reduction="none", **options)
        np.testing.assert_allclose(apart, np.zeros(N), atol=1e-12)


@pytest.mark.parametrize("mode", EAGER)
def test_log_probs_are_those_of_the_softmax(mode):
    def log_probs(x, w, b, labels):
        return pb.ops.linear_log_probs(x, w, labels, bias=b, chunk=4)

    value, gradients = value_and_gradients(mode, log_probs, (X, W, B, LABELS))
    tensors = [torch.tensor(a, requires_grad=True) for a in (X, W, B)]
    counted = torch.tensor(LABELS >= 0)
    every = torch.log_softmax(tensors[0] @ tensors[1].T + tensors[2], 1)
    picked = every.gather(1, torch.tensor(LABELS).clamp(0)[:, None])[:, 0]
    expected = torch.where(counted, picked, 0)
    slopes = torch.autograd.grad(expected.sum(), tensors)
    close([value, *gradients], [expected.detach(), *slopes], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("mode", [*EAGER, "tensorflow graph"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_contrastive_is_the_cross_entropy_of_pairs(mode, symmetric):
    others = RNG.normal(size=(N if symmetric else N + 3, D))

    def loss(a, b, temperature):
        return pb.ops.contrastive(a, b, temperature=temperature, symmetric=symmetric, chunk=4)

    value, gradients = value_and_gradients(mode, loss, (X, others, np.array(0.7)))
    tensors = [torch.tensor(a, requires_grad=True) for a in (X, others, np.array(0.7))]
    z = tensors[0] @ tensors[1].T / tensors[2]
    expected = torch.nn.functional.cross_entropy(z, torch.arange(N))
    if symmetric:
        expected = (expected + torch.nn.functional.cross_entropy(z.T, torch.arange(N))) / 2
    slopes = torch.autograd.grad(expected, tensors)
    close([value, *gradients], [expected.item(), *slopes], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda: KL(X, W, TX, TW[:5]), InputError, "11 classes, and 5 of the teacher"),
        (lambda: KL(X, W, TX[:2], TW), InputError, "`teacher_x` of shape"),
        (lambda: KL(X, W, TX, TW, direction="up"), OptionError, "direction='up'"),
        (lambda: KL(X, W, TX, TW, temperature=0), OptionError, "temperature=0"),
        (lambda: JS(X, W, TX, TW, beta=1), OptionError, "beta=1"),
        (lambda: pb.ops.contrastive(X, X[:3]), InputError, "as many rows of b as of a"),
        (lambda: pb.ops.contrastive(X, X, temperature=-1), OptionError, "temperature=-1"),
        (lambda: pb.ops.linear_log_probs(X, W, LABELS + 11), InputError, "linear_log_probs: a label outside"),
    ],
)
def test_what_they_cannot_take_is_refused_in_words(call, error, word):
    with pytest.raises(error, match=word):
        call()


def test_16_bits_are_summed_in_32():
    given = [tf.cast(tf.constant(a), tf.bfloat16) for a in (X, W, TX, TW)]
    exact = [tf.cast(a, tf.float64).numpy() for a in given]
    for function, options, _ in WAYS.values():
        found = function(*given, **options)
        assert found.dtype == tf.float32
        np.testing.assert_allclose(
            found, function(*exact, **options), rtol=1e-2 if "temperature" in options else 1e-5
        )


IN_LOOPS = {
    "cross_entropy": lambda x, w: pb.ops.linear_cross_entropy(x, w, LABELS, chunk=4),
    "log_probs": lambda x, w: tf.reduce_sum(pb.ops.linear_log_probs(x, w, LABELS, chunk=4)),
    "contrastive": lambda x, w: pb.ops.contrastive(x, w, symmetric=False, chunk=4),
}


@pytest.mark.parametrize("loss", IN_LOOPS.values(), ids=IN_LOOPS)
def test_a_loop_of_a_graph_is_pushed_through(loss):
    x, w = tf.constant(X), tf.constant(W)

    @tf.function
    def pushed(x, w):
        with tf.autodiff.ForwardAccumulator([x, w], [tf.sin(x), tf.cos(w)]) as accumulator:
            y = loss(x, w)
        return accumulator.jvp(y)

    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = loss(x, w)
    dx, dw = tape.gradient(y, [x, w])
    expected = np.sum(dx * np.sin(X)) + np.sum(dw * np.cos(W))
    close([pushed(x, w)], [expected], rtol=1e-10, atol=1e-12)
