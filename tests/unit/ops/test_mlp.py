"""`pb.ops.mlp` is the plain block on every host, to second order and forward, and keeps its inputs alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from asked import ASK, DTYPES
from kept_bytes import of_tensorflow, of_torch
from torch.nn import functional

import pullback as pb

RNG = np.random.default_rng(7)
D, F, E = 3, 6, 2
X, UP, GATE, DOWN = (RNG.normal(size=shape) for shape in ((2, 4, D), (D, F), (D, F), (F, E)))
BIASES = [RNG.normal(size=n) for n in (F, F, E)]
DY = np.cos(np.arange(16.0)).reshape(2, 4, E)
NAMES = ("gate", "up_bias", "gate_bias", "down_bias")
ACTIVATIONS = {
    "gelu": functional.gelu,
    "gelu_tanh": lambda h: functional.gelu(h, approximate="tanh"),
    "relu": functional.relu,
    "silu": functional.silu,
}
# name → activation, and which of gate and biases there are
TABLE = {
    "gelu": ("gelu", ()),
    "tanh, biases": ("gelu_tanh", ("up_bias", "down_bias")),
    "relu, last bias": ("relu", ("down_bias",)),
    "swiglu": ("silu", ("gate",)),
    "geglu, biases": ("gelu", NAMES),
}
GIVEN = dict(zip(NAMES, (GATE, *BIASES)))


def of(name):
    """Give the block, PyTorch's own operations, and the arrays."""
    activation, names = TABLE[name]

    def ours(x, up, down, *rest):
        return pb.ops.mlp(x, up, down, activation=activation, **dict(zip(names, rest)))

    def plain(x, up, down, *rest):
        given = dict(zip(names, rest))
        h = x @ up + given.get("up_bias", 0)
        act = ACTIVATIONS[activation]
        a = act(x @ given["gate"] + given.get("gate_bias", 0)) * h if "gate" in given else act(h)
        return a @ down + given.get("down_bias", 0)

    return ours, plain, [X, UP, DOWN, *(GIVEN[name] for name in names)]


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("name", TABLE)
def test_values_and_gradients_are_those_of_the_plain_block(name, host):
    ours, plain, arrays = of(name)
    (expected,), slopes = ASK["torch"](plain, arrays, [DY])
    (found,), gradients = ASK[host](ours, arrays, [DY])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    for mine, theirs in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", TABLE)
def test_nothing_is_kept_beyond_the_inputs(name):
    ours, _, arrays = of(name)
    assert of_tensorflow(ours, *[tf.constant(a) for a in arrays]) == 0
    assert of_torch(ours, *[torch.tensor(a, requires_grad=True) for a in arrays]) == 0


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_that_of_double_rounded(dtype, host):
    ours, _, arrays = of("geglu, biases")
    kind, roundoff = DTYPES[dtype]
    given = [a.astype(kind) for a in arrays]
    (expected,), slopes = ASK[host](ours, [np.asarray(a, np.float64) for a in given], [np.ones_like(DY)])
    (found,), gradients = ASK[host](ours, given, [np.ones_like(DY)])
    for mine, theirs in zip([found, *gradients], [expected, *slopes]):
        room = 8 * roundoff * max(1.0, abs(theirs).max())
        np.testing.assert_allclose(np.asarray(mine, float), theirs, atol=room)


@pytest.mark.parametrize("name", ["tanh, biases", "geglu, biases"])
def test_second_order_and_forward_mode_are_those_of_the_plain_block(name):
    ours, plain, arrays = of(name)
    found = []
    for f in (ours, plain):
        xs = [torch.tensor(a, requires_grad=True) for a in arrays]
        first = torch.autograd.grad(f(*xs), xs, torch.tensor(DY), create_graph=True)
        total = sum((g * torch.cos(g)).sum() for g in first)
        second = torch.autograd.grad(total, xs, materialize_grads=True)
        inputs = [x.detach() for x in xs]
        found.append([*second, torch.func.jvp(f, tuple(inputs), tuple(x.cos() for x in inputs))[1]])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-11)


def test_a_graph_need_not_know_its_lengths():
    ours, _, arrays = of("geglu, biases")
    shapes = [[None] * X.ndim, *(a.shape for a in arrays[1:])]

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float64) for shape in shapes])
    def run(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = ours(*xs)
        return y, *tape.gradient(y, xs, tf.constant(DY))

    (expected,), slopes = ASK["torch"](ours, arrays, [DY])
    for mine, theirs in zip(run(*map(tf.constant, arrays)), [expected, *slopes], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


N, WIDE, DEPTH = 512, 512, 8


def test_compiled_by_jax_the_wide_part_of_each_block_is_forgotten():
    def temporary(block):
        def loss(x, ups, downs):
            for up, down in zip(ups, downs):
                x = x + block(x, up, down)
            return x.sum()

        arrays = jnp.ones((N, 8)), [jnp.ones((8, WIDE))] * DEPTH, [jnp.ones((WIDE, 8))] * DEPTH
        return (
            jax.jit(jax.grad(loss, (0, 1, 2))).lower(*arrays).compile().memory_analysis().temp_size_in_bytes
        )

    wide = 4 * N * WIDE  # of one array inside of one block
    assert temporary(lambda x, up, down: jax.nn.silu(x @ up) @ down) > DEPTH * wide
    assert temporary(lambda *xs: pb.ops.mlp(*xs, activation="silu")) < 5 * wide


def test_compiled_by_xla_the_first_product_is_computed_twice():
    """Merged, the second one would be the first, kept. A cotangent that is constant does not merge them."""

    @tf.function(jit_compile=True)
    def run(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = pb.ops.mlp(*xs)
        return y, tape.gradient(y, xs)

    program = run.experimental_get_compiler_ir(tf.ones((4, 3)), tf.ones((3, 5)), tf.ones((5, 3)))
    assert program(stage="optimized_hlo").count(" dot(") == 7


def test_no_tokens_have_gradients_of_zero():
    for ask in ASK.values():
        (y,), gradients = ask(pb.ops.mlp, [X[:0], UP, DOWN])
        assert y.shape == (0, 4, E)
        assert [g.shape for g in gradients] == [(0, 4, D), (D, F), (F, E)]
        assert not any(g.any() for g in gradients)


BAD = [
    ([X, UP.T, DOWN], {}, "`up` of shape (6, 3)"),
    ([X, UP, DOWN[:2]], {}, "`down` of shape (2, 2)"),
    ([X, UP[0], DOWN], {}, "`up` of shape (6,)"),
    ([np.float64(3), UP, DOWN], {}, "`x` of shape ()"),
    ([X, UP, DOWN], {"up_bias": np.zeros(2)}, "`up_bias` of shape (2,)"),
    ([X, UP, DOWN], {"gate": UP[:1]}, "`gate` of shape (1, 6)"),
    ([X, UP, DOWN], {"gate_bias": np.zeros(F)}, "`gate_bias` without `gate`"),
    ([X, UP, DOWN.astype(np.float32)], {}, "`down` of float32"),
    ([np.arange(3), UP.astype(int), DOWN.astype(int)], {}, "`x` of int64"),
    ([X, UP, DOWN], {"activation": "tanh"}, "activation='tanh'"),
]


@pytest.mark.parametrize(("given", "options", "text"), BAD, ids=range(len(BAD)))
def test_bad_input_is_named(given, options, text):
    with pytest.raises(pb.errors.InputError) as error:
        pb.ops.mlp(*given, **options)
    for part in (text, "\n  expected: ", "\n  fix: "):
        assert part in str(error.value)
