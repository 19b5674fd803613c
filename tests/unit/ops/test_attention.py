"""`pb.ops.attention`: exact in every layout, in chunks of any size, and never NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from three_hosts import HOSTS, close

import pullback as pb
from pullback.ops.linear import chunks


@pytest.fixture(params=HOSTS.values(), ids=HOSTS)
def host(request):
    return request.param


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def plain(q, k, v, mask=None, bias=None, causal=False, scale=None):
    """What attention is, with all scores at once; a query that sees nothing gives zeros."""
    xp = pb.namespace(q)
    groups = q.shape[-3] // k.shape[-3]
    if groups > 1:
        k, v = (xp.repeat(a, groups, axis=-3) for a in (k, v))
    z = q @ xp.matrix_transpose(k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    z = z if bias is None else z + bias
    seen = (
        np.ones(tuple(z.shape), bool) if mask is None else np.broadcast_to(np.asarray(mask), tuple(z.shape))
    )
    if causal:
        seen = seen & np.tri(*tuple(z.shape)[-2:], dtype=bool)
    low = np.where(seen, 0, -1e30).astype(np.float32)
    z = z * xp.asarray(seen.astype(np.float32)) + xp.asarray(low)
    e = xp.exp(z - xp.max(z, axis=-1, keepdims=True)) * xp.asarray(seen.astype(np.float32))
    total = xp.sum(e, axis=-1, keepdims=True)
    return e @ v / xp.where(total > 0, total, xp.ones_like(total))


CASES = {
    "plain": ((2, 3, 5, 4), (2, 3, 7, 4), {}),
    "one chunk": ((2, 3, 5, 4), (2, 3, 7, 4), {"chunk": 100}),
    "causal": ((3, 6, 4), (3, 6, 4), {"causal": True}),
    "more queries than keys": ((1, 6, 4), (1, 3, 4), {"causal": True}),
    "groups": ((2, 6, 5, 4), (2, 2, 7, 4), {"causal": True, "scale": 0.3}),
    "mask": ((2, 4, 5, 4), (2, 2, 7, 4), {"mask": (5, 7)}),
    "mask of a batch": ((2, 4, 5, 4), (2, 2, 7, 4), {"mask": (2, 1, 1, 7)}),
    "mask of heads": ((2, 4, 5, 4), (2, 2, 7, 4), {"mask": (4, 5, 7), "causal": True}),
    "bias of heads": ((2, 4, 5, 4), (2, 4, 7, 4), {"bias": (4, 5, 7)}),
    "bias of keys": ((2, 4, 5, 4), (2, 2, 7, 4), {"bias": (7,)}),
    "bias of all": ((2, 4, 5, 4), (2, 2, 7, 4), {"bias": (2, 4, 5, 7)}),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_all_scores_at_once(host, name):
    shape, other, options = CASES[name]
    options = dict(options)
    mask = drawn(*options.pop("mask")) > 0 if "mask" in options else None
    xs = [drawn(*shape), drawn(*other), drawn(*other[:-1], 3)]
    if "bias" in options:
        xs.append(drawn(*options.pop("bias")))
    tensors = [host.tensor(x) for x in xs]
    chunk = options.pop("chunk", 2)

    def ours(q, k, v, bias=None):
        seen = None if mask is None else host.tensor(mask)
        return pb.ops.attention(q, k, v, mask=seen, bias=bias, chunk=chunk, **options)

    def expected(q, k, v, bias=None):
        return plain(q, k, v, mask, bias, **options)

    jit = host is HOSTS["jax"]  # operation by operation, each would be compiled by itself
    close([host.wrap(jit)(ours)(*tensors)], [host.wrap(jit)(expected)(*tensors)], 1e-5)
    found = host.gradients(ours, tensors, compiled=jit)
    close(found, host.gradients(expected, tensors, compiled=jit), 1e-4)


def test_in_a_graph():
    host = HOSTS["tensorflow"]
    xs = [host.tensor(x) for x in (drawn(2, 5, 4), drawn(2, 7, 4), drawn(2, 7, 4))]
    found = host.gradients(lambda *xs: pb.ops.attention(*xs, causal=True, chunk=2), xs, compiled=True)
    close(found, host.gradients(lambda *xs: plain(*xs, causal=True), xs), 1e-4)


def test_the_kernel_of_pytorch_is_used_where_it_is_exact():
    xs = [torch.tensor(drawn(2, n, 4)) for n in (5, 7, 7)]
    close([pb.ops.attention(*xs, causal=True)], [plain(*xs, causal=True)])


@pytest.mark.parametrize("chunk", [2, 5])
def test_large_scores_keep_their_digits(host, chunk):
    # scores of 2²⁰ and a few eighths, exact in float32: what is left to lose is the sum of the exponentials
    eighths = np.random.default_rng(0).integers(0, 12, 7) / 8
    q = np.stack([np.full(5, 1024.0), np.arange(1.0, 6)], 1)[None].astype(np.float32)
    k = np.stack([np.full(7, 1024.0), eighths], 1)[None].astype(np.float32)
    v = drawn(1, 7, 3)
    z = q[0].astype(float) @ k[0].T.astype(float)
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    dy = 2 * p @ v[0]
    dp = dy @ v[0].T
    dz = p * (dp - (p * dp).sum(1, keepdims=True))
    dq, dk, dv = host.gradients(
        lambda *xs: pb.ops.attention(*xs, scale=1.0, chunk=chunk), [host.tensor(a) for a in (q, k, v)]
    )
    pairs = (dq[0, :, 1], dz @ k[0, :, 1]), (dk[0, :, 1], dz.T @ q[0, :, 1]), (dv[0], p.T @ dy)
    for found, exact in pairs:
        np.testing.assert_allclose(found, exact, rtol=0, atol=3e-6 * abs(exact).max())


def test_where_one_key_takes_it_all_nothing_is_left_of_rounding(host):
    q, k = (np.round(1e3 * drawn(2, n, 32)) for n in (5, 7))  # scores are about 1e6, and so far apart
    jit = host is HOSTS["jax"]
    found = host.gradients(
        lambda *xs: pb.ops.attention(*xs, chunk=2),
        [host.tensor(x) for x in (q, k, drawn(2, 7, 64))],
        compiled=jit,
    )
    assert not found[0].any()
    assert not found[1].any()
    assert found[2].any()


@pytest.mark.parametrize("heads", [1, 3, 4, 5])
@pytest.mark.parametrize("axes", [(1, 1, 1, 4), (1, 2, 3, 4), (2, 1, 3, 1), (2, 2, 1, 4)])
def test_heads_that_are_looked_at_one_after_the_other(heads, axes, monkeypatch, host):
    # 2 · 2 heads, which 3 · 4 scores of each fit into a chunk
    monkeypatch.setattr(chunks, "NEAR", 12 * heads)
    xs = [host.tensor(drawn(*shape)) for shape in ((2, 2, 3, 2), (2, 2, 4, 2), (2, 2, 4, 3), axes)]
    mask = host.tensor(drawn(2, 1, 3, 4) > -0.5)

    def attend(f, **options):
        return lambda q, k, v, bias: f(q, k, v, mask=mask, bias=bias, **options)

    jit = host is not HOSTS["torch"]
    found = host.gradients(attend(pb.ops.attention, chunk=3), xs, compiled=jit)
    close(found, host.gradients(attend(plain), xs), 1e-4)


def test_second_order(host):
    k, v = host.tensor(drawn(1, 4, 3)), host.tensor(drawn(1, 4, 3))

    def second(f):
        x = host.tensor(drawn(1, 3, 3))
        jit = host is HOSTS["jax"]
        return host.gradients(lambda q: host.gradient(lambda q: f(q, k, v), q), [x], compiled=jit)

    close(second(lambda *xs: pb.ops.attention(*xs, chunk=2)), second(plain), 1e-3)


def test_a_mask_and_a_bias_may_be_arrays_of_numpy(host):
    x = host.tensor(drawn(1, 2, 3))
    mask, bias = np.array([[True, False], [True, True]]), drawn(2, 2)
    found = pb.ops.attention(x, x, x, mask=mask, bias=bias)
    close(found, pb.ops.attention(x, x, x, mask=host.tensor(mask), bias=host.tensor(bias)))


def test_whole_numbers_are_refused_in_words():
    x = torch.ones(1, 2, 3)
    with pytest.raises(pb.errors.UnsupportedInputError, match="dtypes int32, float32, float32"):
        pb.ops.attention(x.int(), x, x)


def test_a_query_that_sees_nothing_gives_zeros(host):
    xs = [host.tensor(drawn(1, 3, 2)) for _ in range(3)]
    mask = host.tensor(np.array([[True, False, True], [False] * 3, [True] * 3]))

    def f(*xs):
        return pb.ops.attention(*xs, mask=mask, chunk=2)

    jit = host is HOSTS["jax"]
    assert np.all(np.asarray(host.wrap(jit)(f)(*xs))[0, 1] == 0)
    gradients = host.gradients(f, xs, compiled=jit)
    assert all(np.all(np.isfinite(g)) for g in gradients)
    assert np.all(gradients[0][0, 1] == 0)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 2, 0, 4)])
def test_an_empty_batch_and_no_queries(host, shape):
    q, k = host.tensor(np.zeros(shape, np.float32)), host.tensor(np.zeros((*shape[:2], 3, 4), np.float32))
    jit = host is HOSTS["jax"]
    found = host.gradients(lambda *xs: pb.ops.attention(*xs, chunk=2), [q, k, k], compiled=jit)
    assert [g.shape for g in found] == [shape, tuple(k.shape), tuple(k.shape)]


@pytest.mark.parametrize(
    ("shapes", "options", "text"),
    [
        ([(2, 5, 4), (2, 7, 3), (2, 7, 3)], {}, "(2, 5, 4), (2, 7, 3), (2, 7, 3)"),
        ([(3, 5, 4), (2, 7, 4), (2, 7, 4)], {}, "divide"),
        ([(5, 4), (7, 4), (7, 4)], {}, "heads"),
        ([(2, 5, 4), (2, 7, 4), (2, 6, 4)], {}, "(2, 6, 4)"),
        ([(2, 5, 4), (2, 7, 4), (2, 7, 4)], {"mask": np.ones((4, 7), bool)}, "a mask of shape (4, 7)"),
        ([(2, 5, 4), (2, 7, 4), (2, 7, 4)], {"mask": np.ones((5, 7))}, "a mask of float64"),
        ([(2, 5, 4), (2, 7, 4), (2, 7, 4)], {"chunk": 0}, "chunk=0"),
    ],
)
def test_bad_input_is_named(shapes, options, text):
    with pytest.raises(pb.errors.PullbackError) as error:
        pb.ops.attention(*(drawn(*shape) for shape in shapes), **options)
    assert text in str(error.value)


def test_half_precision_sums_in_float32():
    xs = [drawn(1, 64, 16), 5 * drawn(1, 64, 16), drawn(1, 64, 16)]
    halves = [jnp.asarray(x, jnp.bfloat16) for x in xs]
    found = np.asarray(pb.ops.attention(*halves, chunk=16), np.float32)
    exact = np.asarray(plain(*(np.asarray(h, np.float64) for h in halves)), np.float32)
    assert np.abs(found - exact).max() < 0.01


def test_the_scores_are_never_held():
    x = jnp.ones((1, 2048, 8))

    def temporary(f):
        compiled = jax.jit(jax.grad(lambda q, k, v: jnp.sum(f(q, k, v)), (0, 1, 2))).lower(x, x, x).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporary(lambda q, k, v: pb.ops.attention(q, k, v, chunk=64)) < 0.2 * 2048 * 2048 * 4


def test_by_default_a_chunk_of_scores_is_small():
    def memory(attend):
        x = jax.ShapeDtypeStruct((1, 2, 2048, 16), "float32")
        program = jax.jit(jax.grad(lambda q, k, v: jnp.sum(attend(q, k, v)), (0, 1, 2)))
        return program.lower(x, x, x).compile().memory_analysis().temp_size_in_bytes

    def plain(q, k, v):
        return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 4) @ v

    assert memory(pb.ops.attention) < 0.5 * memory(plain)


def test_pytorch_pushes_maps_and_compiles_it_whole():
    q, k, v, along = (torch.tensor(drawn(2, 4, 3) + i / 4) for i in range(4))

    def attend(q):
        return pb.ops.attention(q, k, v)

    pushed = torch.func.jvp(attend, (q,), (along,))[1]
    close(pushed, torch.func.jvp(lambda q: plain(q, k, v), (q,), (along,))[1])
    close(torch.vmap(attend)(torch.stack([q, along])), torch.stack([attend(q), attend(along)]))
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    close(compiled(q), plain(q, k, v))
    moving = q.clone().requires_grad_()
    close(*(torch.autograd.grad(f(moving).square().sum(), moving)[0] for f in (compiled, attend)))
