"""linear_cross_entropy is the plain loss, in every framework and mode, with every option and at edges."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from linear_hosts import EAGER, MODES, close, value_and_gradients

import pullback as pb
from pullback.errors import HostError, InputError, OptionError
from pullback.ops.linear import accumulated, chunks, cross_entropy, streamed
from pullback.ops.linear.kernels import kernels_of

RNG = np.random.default_rng(3)
N, D, V = 7, 5, 23
X, W, B = RNG.normal(size=(N, D)), RNG.normal(size=(V, D)), RNG.normal(size=V)
WEIGHTS, LABELS = RNG.uniform(0.5, 2, N), RNG.integers(0, V, N)
LABELS[3] = -100
ALL = {"label_smoothing": 0.1, "z_loss": 0.01, "soft_cap": 2.0}


def plain(
    x, w, labels, b=0.0, weights=None, *, reduction="mean", label_smoothing=0.0, z_loss=0.0, soft_cap=None
):
    """Give the loss with all logits held, and the gradients of its sum for x, w, b and the weights."""
    weights = np.ones(len(x)) if weights is None else weights
    z = x @ w.T + b
    slope = 1.0
    if soft_cap is not None:
        z = soft_cap * np.tanh(z / soft_cap)
        slope = 1 - (z / soft_cap) ** 2
    counted = labels != -100
    target = np.eye(len(w))[np.where(counted, labels, 0)]
    lse = np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1)
    mixed = (1 - label_smoothing) * target + label_smoothing / len(w)
    losses = (lse - (mixed * z).sum(1) + z_loss * lse**2) * counted
    c = weights * counted
    total = c.sum() if reduction == "mean" else 1.0
    softmax = np.exp(z - lse[:, None])
    g = (c / total)[:, None] * ((1 + 2 * z_loss * lse)[:, None] * softmax - mixed) * slope
    value = c * losses if reduction == "none" else (c * losses).sum() / total
    dweights = losses if reduction != "mean" else (losses - value) / total * counted
    return value, [g @ w, g.T @ x, g.sum(0), dweights]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("reduction", "options"),
    [("mean", {}), ("none", ALL), ("sum", ALL)],
    ids=["mean", "one by one, all options", "sum, all options"],
)
def test_it_is_the_plain_loss(mode, reduction, options):
    def loss(x, w, b, weights, labels):
        return pb.ops.linear_cross_entropy(
            x, w, labels, bias=b, weights=weights, reduction=reduction, chunk=4, **options
        )

    value, gradients = value_and_gradients(mode, loss, (X, W, B, WEIGHTS, LABELS))
    expected, slopes = plain(X, W, LABELS, B, WEIGHTS, reduction=reduction, **options)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    close(gradients, slopes, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("chunk", [1, 6, V, 1000, None])
@pytest.mark.parametrize("mode", ["tensorflow graph", "jax jit", "torch eager"])
def test_chunks_need_not_divide(mode, chunk):
    def loss(x, w, labels):
        return pb.ops.linear_cross_entropy(x, w, labels, chunk=chunk)

    value, gradients = value_and_gradients(mode, loss, (X, W, LABELS))
    expected, slopes = plain(X, W, LABELS)
    close([value, *gradients], [expected, *slopes[:2]], rtol=1e-10, atol=1e-13)


def test_numpy_has_the_value():
    value = pb.ops.linear_cross_entropy(X, W, LABELS, bias=B, weights=WEIGHTS, chunk=4, **ALL)
    np.testing.assert_allclose(value, plain(X, W, LABELS, B, WEIGHTS, **ALL)[0], rtol=1e-12)


def test_tokens_have_any_number_of_axes():
    x, labels = torch.tensor(X[:6]).reshape(2, 3, D), torch.tensor(LABELS[:6]).reshape(2, 3)
    losses = pb.ops.linear_cross_entropy(x, torch.tensor(W), labels, reduction="none")
    assert losses.shape == (2, 3)
    np.testing.assert_allclose(losses.flatten(), plain(X[:6], W, LABELS[:6], reduction="none")[0], rtol=1e-12)
    one = pb.ops.linear_cross_entropy(X[0], W, LABELS[0])
    np.testing.assert_allclose(one, plain(X[:1], W, LABELS[:1])[0], rtol=1e-12)


def test_a_graph_need_not_know_its_lengths():
    sizes = [[None, None], [None, None], [None]]
    kinds = [tf.float64, tf.float64, tf.int64]

    @tf.function(input_signature=[tf.TensorSpec(size, kind) for size, kind in zip(sizes, kinds)])
    def loss(x, w, labels):
        return pb.ops.linear_cross_entropy(x, w, labels, chunk=5)

    tensors = [tf.constant(X), tf.constant(W)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = loss(*tensors, tf.constant(LABELS))
    expected, slopes = plain(X, W, LABELS)
    close([value, *tape.gradient(value, tensors)], [expected, *slopes[:2]], rtol=1e-10, atol=1e-13)


# ── which algorithm ──────────────────────────────────────────────────────────────────────────────────────


def both_ways(x, w, labels, coefficients, cap=2.0, smoothing=0.1, z_loss=0.01):
    """Give Σ cᵢ·lossᵢ by either rule, on any host."""
    options = {"cap": cap, "chunk": 4}
    terms = {"smoothing": smoothing, "z_loss": z_loss}
    whole = accumulated.weighted_sum(x, w, None, labels, coefficients, **terms, **options)
    lse, surprise, spread = streamed.row_sums(x, w, None, labels, spread=True, **options)
    losses = (1 - smoothing) * surprise + smoothing * spread + z_loss * lse * lse
    return whole, pb.namespace(losses).sum(coefficients * losses)


def test_both_algorithms_are_the_same_to_second_order_in_torch():
    tensors = [torch.tensor(a, requires_grad=True) for a in (X, W, WEIGHTS)]
    found = []
    for way in (0, 1):
        x, w, c = tensors
        first = torch.autograd.grad(both_ways(x, w, torch.tensor(LABELS), c)[way], tensors, create_graph=True)
        found.append([*first, *torch.autograd.grad(sum((g * g).sum() for g in first), tensors)])
    close(*[[g.detach() for g in way] for way in found], rtol=1e-9, atol=1e-12)


def test_both_algorithms_are_the_same_to_second_order_in_jax():
    with jax.enable_x64(True):
        arrays, labels = [jnp.asarray(a) for a in (X, W, WEIGHTS)], jnp.asarray(LABELS)

        def second(way):
            def first(*arrays):
                x, w, c = arrays
                gradients = jax.grad(lambda *a: both_ways(a[0], a[1], labels, a[2])[way], (0, 1, 2))(x, w, c)
                return sum((g * g).sum() for g in gradients), gradients

            return jax.jit(jax.grad(first, (0, 1, 2), has_aux=True))(*arrays)

        (a, b), (c, d) = second(0), second(1)
        close([*a, *b], [*c, *d], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [(), (None, 0.0, 0.0)], ids=["all options", "by its own operation"])
def test_both_algorithms_are_the_same_to_second_order_in_xla(options):
    # what is made of a token that does not count is multiplied by 0
    tensors, labels = [tf.constant(a) for a in (X, W, WEIGHTS)], tf.constant(np.maximum(LABELS, 0))

    @tf.function(jit_compile=True)
    def gradients(x, w, c):
        found = []
        for way in (0, 1):
            with tf.GradientTape() as outer:
                outer.watch([x, w, c])
                with tf.GradientTape() as tape:
                    tape.watch([x, w, c])
                    loss = both_ways(x, w, labels, c, *options)[way]
                first = tape.gradient(loss, [x, w, c])
                size = sum(tf.reduce_sum(g * g) for g in first)
            found.append([*first, *outer.gradient(size, [x, w, c])])
        return found

    close(*gradients(*tensors), rtol=1e-9, atol=1e-12)


@pytest.fixture
def in_pieces(monkeypatch):
    monkeypatch.setattr(chunks, "NEAR", 40)
    monkeypatch.setattr(chunks, "STEP", 4)
    assert [size for _, size in kernels_of(tf.constant(W)).pieces(tf.constant(W), 4)] == [V]
    with tf.Graph().as_default():
        assert [size for _, size in kernels_of(tf.constant(W)).pieces(tf.constant(W), 4)] == [12, 11]


@pytest.mark.parametrize("labels", [LABELS, np.full(N, 2), np.full(N, -100)], ids=["all", "one", "none"])
@pytest.mark.parametrize("options", [{}, ALL, {"z_loss": 0.3}, {"label_smoothing": 0.2}, {"soft_cap": 1.0}])
def test_a_graph_sums_up_pieces_of_the_classes(in_pieces, labels, options):
    def loss(x, w, b, weights, labels):
        return pb.ops.linear_cross_entropy(x, w, labels, bias=b, weights=weights, chunk=4, **options)

    if (labels == -100).all():
        expected, slopes = 0.0, [np.zeros_like(a) for a in (X, W, B, WEIGHTS)]
    else:
        expected, slopes = plain(X, W, labels, B, WEIGHTS, **options)
    value, gradients = value_and_gradients("tensorflow graph", loss, (X, W, B, WEIGHTS, labels))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    close(gradients, slopes, rtol=1e-10, atol=1e-13)


def test_pieces_have_a_second_order(in_pieces):
    tensors, labels = [tf.constant(a) for a in (X, W, WEIGHTS)], tf.constant(np.maximum(LABELS, 0))

    @tf.function
    def gradients(x, w, c):
        found = []
        for way in (0, 1):
            with tf.GradientTape() as outer:
                outer.watch([x, w, c])
                with tf.GradientTape() as tape:
                    tape.watch([x, w, c])
                    loss = both_ways(x, w, labels, c)[way]
                first = tape.gradient(loss, [x, w, c])
                size = sum(tf.reduce_sum(g * g) for g in first)
            found.append([*first, *outer.gradient(size, [x, w, c])])
        return found

    close(*gradients(*tensors), rtol=1e-9, atol=1e-12)


def test_the_gradient_is_made_at_once_only_where_somebody_records(monkeypatch):
    taken = []

    def told(name, rule):
        def run(*args, **options):
            taken.append(name)
            return rule(*args, **options)

        return run

    for name in ("weighted_sum", "row_sums"):
        monkeypatch.setattr(cross_entropy, name, told(name, getattr(cross_entropy, name)))
    x, w, labels = torch.tensor(X), torch.tensor(W), torch.tensor(LABELS)
    pb.ops.linear_cross_entropy(x, w, labels)
    x.requires_grad_()
    pb.ops.linear_cross_entropy(x, w, labels)
    pb.ops.linear_cross_entropy(x, w, labels, reduction="none")
    with torch.no_grad():
        pb.ops.linear_cross_entropy(x, w, labels)
    torch.func.grad(lambda x: pb.ops.linear_cross_entropy(x, w, labels))(x)
    assert taken == ["row_sums", "weighted_sum", "row_sums", "row_sums", "row_sums"]


def test_torch_batches_it():
    x, w, labels = torch.tensor(X).reshape(N, 1, D), torch.tensor(W), torch.tensor(LABELS).reshape(N, 1)
    slopes = torch.func.vmap(
        torch.func.grad(lambda x, y: pb.ops.linear_cross_entropy(x, w, y, reduction="sum", chunk=4))
    )(x, labels)
    np.testing.assert_allclose(slopes[:, 0], plain(X, W, LABELS, reduction="sum")[1][0], rtol=1e-10)


# ── 16 bits ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_16_bits_are_summed_in_32(kind):
    """The loss is that of the rounded inputs to float32's digits, the gradients to those of the dtype."""
    x, w = (torch.tensor(a, dtype=getattr(torch, kind)).double().numpy() for a in (X, W))
    expected, slopes = plain(x, w, LABELS)
    epsilon = float(torch.finfo(getattr(torch, kind)).eps)
    made = {
        "tensorflow": lambda a: tf.cast(tf.constant(a), kind),
        "jax": lambda a: jnp.asarray(a).astype(kind),
        "torch": lambda a: torch.tensor(a).to(getattr(torch, kind)),
    }
    for host, tensor in made.items():
        given = [tensor(x), tensor(w)]
        labels = tensor(LABELS) if host == "jax" else torch.tensor(LABELS)
        if host == "tensorflow":
            with tf.GradientTape() as tape:
                tape.watch(given)
                value = pb.ops.linear_cross_entropy(*given, LABELS, chunk=4)
            gradients = [tf.cast(g, tf.float64) for g in tape.gradient(value, given)]
        elif host == "jax":
            value, gradients = jax.value_and_grad(pb.ops.linear_cross_entropy, (0, 1))(
                *given, jnp.asarray(LABELS), chunk=4
            )
            gradients = [np.asarray(g, np.float64) for g in gradients]
        else:
            value = pb.ops.linear_cross_entropy(*[g.requires_grad_() for g in given], labels, chunk=4)
            gradients = [g.double() for g in torch.autograd.grad(value, given)]
            value = value.detach()
        np.testing.assert_allclose(np.asarray(value, np.float64), expected, rtol=1e-6)
        close(gradients, slopes[:2], rtol=2 * epsilon, atol=epsilon / 8)


def test_logits_beyond_float16_have_a_loss():
    x, w = torch.full((2, 64), 200.0, dtype=torch.float16), torch.full((3, 64), 200.0, dtype=torch.float16)
    w[1] = -200
    value = pb.ops.linear_cross_entropy(x.requires_grad_(), w, torch.tensor([0, 2]))
    np.testing.assert_allclose(value.item(), np.log(2), rtol=1e-6)
    assert torch.isfinite(torch.autograd.grad(value, x)[0]).all()


# ── edges ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [*EAGER, "tensorflow xla"])
@pytest.mark.parametrize(
    ("x", "w", "labels"),
    [(X[:0], W, LABELS[:0]), (X, W, np.full(N, -100)), (X, W[:1], np.zeros(N, int))],
    ids=["no tokens", "none that counts", "one class"],
)
def test_nothing_to_learn_is_zero(mode, x, w, labels):
    def loss(x, w, labels):
        return pb.ops.linear_cross_entropy(x, w, labels)

    value, gradients = value_and_gradients(mode, loss, (x, w, labels))
    np.testing.assert_allclose(value, 0, atol=1e-12)
    close(gradients, [np.zeros_like(x), np.zeros_like(w)], atol=1e-12)


@pytest.mark.parametrize("mode", [*EAGER, "tensorflow xla"])
def test_a_class_is_taken_out_by_its_bias(mode):
    bias = np.where(np.arange(V) < 9, -np.inf, 0.0)
    labels = np.where(LABELS < 9, 9, LABELS)

    def loss(x, w, labels):
        return pb.ops.linear_cross_entropy(x, w, labels, bias=bias, chunk=4)

    value, (dx, dw) = value_and_gradients(mode, loss, (X, W, labels))
    expected, slopes = plain(X, W[9:], labels - 9)
    close([value, dx, dw[9:]], [expected, *slopes[:2]], rtol=1e-10, atol=1e-13)
    assert not dw[:9].any()


def test_a_label_that_is_out_costs_infinity_and_among_no_classes_nothing_is_known():
    for framework in (tf.constant, torch.tensor, jnp.asarray):
        given = [framework(a) for a in (X, W, LABELS)]
        for out, expected in ((np.arange(V) == LABELS[0], np.inf), (np.arange(V) >= 0, np.nan)):
            bias = framework(np.where(out, -np.inf, 0.0))
            losses = pb.ops.linear_cross_entropy(*given, bias=bias, reduction="none", chunk=4)
            np.testing.assert_equal(np.asarray(losses)[0], expected)


TORCH = torch.tensor(X), torch.tensor(W), torch.tensor(LABELS)


@pytest.mark.parametrize(
    ("args", "options", "error", "word"),
    [
        ((X, W, np.full(N, V)), {}, InputError, "label outside the 23 classes"),
        ((X, W, np.full(N, -1)), {}, InputError, "label outside the 23 classes"),
        ((X, W.T, LABELS), {}, InputError, r"`w` of shape \(5, 23\)"),
        ((X, W[:0], LABELS), {}, InputError, "no rows"),
        ((X, W, LABELS[:2]), {}, InputError, r"`labels` of shape \(2,\)"),
        ((X, W, LABELS * 1.0), {}, InputError, "whole numbers"),
        ((X > 0, W, LABELS), {}, InputError, "real floating numbers"),
        ((X, W, LABELS), {"bias": B[:4]}, InputError, "one number a class"),
        ((X, W, LABELS), {"weights": WEIGHTS[:4]}, InputError, "`weights` of shape"),
        ((X, W, LABELS), {"reduction": "max"}, OptionError, "reduction='max'"),
        ((X, W, LABELS), {"chunk": 0}, OptionError, "chunk=0"),
        ((X, W, LABELS), {"chunk": 1.5}, OptionError, "chunk=1.5"),
        ((X, W, LABELS), {"label_smoothing": 1}, OptionError, "label_smoothing=1"),
        ((X, W, LABELS), {"soft_cap": 0}, OptionError, "soft_cap=0"),
        ((X, W, LABELS), {"z_loss": "a"}, OptionError, "z_loss='a'"),
        ((TORCH[0], jnp.asarray(W), TORCH[2]), {}, HostError, "tensors of one framework"),
    ],
)
def test_what_it_cannot_take_is_refused_in_words(args, options, error, word):
    with pytest.raises(error, match=word):
        pb.ops.linear_cross_entropy(*args, **options)


def test_a_label_outside_is_told_in_a_graph_and_is_nan_where_nobody_can_be_told():
    x, w, labels = X.astype("f4"), W.astype("f4"), np.full(N, V)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a label is outside the classes"):
        tf.function(pb.ops.linear_cross_entropy)(tf.constant(x), tf.constant(w), tf.constant(labels))
    assert np.isnan(jax.jit(pb.ops.linear_cross_entropy)(x, w, labels))


@pytest.mark.parametrize(
    ("taped", "compiled", "products"),
    [(True, True, 3), (False, True, 1), (True, False, 3), (False, False, 1)],
)
def test_a_graph_has_as_many_products_as_its_way_needs(taped, compiled, products):
    x, w, labels = tf.ones((4, 3)), tf.ones((5, 3)), tf.range(4)

    def loss(x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = pb.ops.linear_cross_entropy(x, w, labels)
        return tape.gradient(y, [x, w])

    step = loss if taped else lambda x, w: pb.ops.linear_cross_entropy(x, w, labels)
    graph = tf.function(step, jit_compile=compiled).get_concrete_function(x, w).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    assert sum(node.op == "MatMul" for node in nodes) == products
