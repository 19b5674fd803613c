"""`pb.reversible`: the values and gradients of the chain, which is undone and not kept."""

import gc
import warnings

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from three_hosts import HOSTS, close

import pullback as pb

X = np.array([[0.3, -0.7], [1.1, 0.4]], np.float32)
Z = np.array([[0.2, 0.9], [-0.4, 0.1]], np.float32)
W = np.array([[0.5, -1.0], [0.7, 0.25]], np.float32)
MODES = [False, True]


@tf.autograph.experimental.do_not_convert
def namespace(x):
    """Spare AutoGraph the source of the library."""
    return pb.namespace(x)


def plain(blocks, **_):
    """The chain as anybody writes it."""

    def chain(x1, x2):
        for f, g in blocks:
            x1 = x1 + f(x2)
            x2 = x2 + g(x1)
        return x1, x2

    return chain


def deep(wrap, depth=3, scale=0.3, **options):
    """A chain whose blocks share a tensor that they close over."""

    def f(x1, x2, w):
        def block(i):
            return (
                lambda x: scale * namespace(x).tanh(x @ w),
                lambda x: scale * namespace(x).sin(x * (i + 1)),
            )

        return wrap([block(i) for i in range(depth)], **options)(x1, x2)

    return f


def given(host):
    return [host.tensor(v) for v in (X, Z, W)]


@pytest.mark.parametrize("compiled", MODES)
def test_gradients_are_those_of_the_chain(host, compiled):
    found = host.gradients(deep(pb.reversible), given(host), compiled=compiled)
    close(found, host.gradients(deep(plain), given(host)))


def test_values_are_those_of_the_chain(host):
    close(deep(pb.reversible)(*given(host)), deep(plain)(*given(host)))
    assert isinstance(deep(pb.reversible)(*given(host)), tuple)


@pytest.mark.parametrize("compiled", MODES)
def test_forward_mode_is_that_of_the_chain(host, compiled):
    _, z, w = given(host)

    def f(wrap):
        return lambda x: deep(wrap)(x, z, w)

    x, dx = host.tensor(X), host.tensor(Z)
    close([host.push(f(pb.reversible), x, dx, compiled=compiled)], [host.push(f(plain), x, dx)])


def test_second_order_is_that_of_the_chain(host):
    def second(wrap):
        return host.gradients(lambda x, z, w: host.gradient(lambda x: deep(wrap)(x, z, w), x), given(host))

    close(second(pb.reversible), second(plain), tolerance=1e-4)


def test_halves_of_two_shapes(host):
    def chain(wrap):
        return wrap([(lambda x: namespace(x).sum(x, axis=1), lambda x: x[:, None] * host.tensor(Z))])

    xs = [host.tensor(X[0]), host.tensor(Z)]
    close(host.gradients(chain(pb.reversible), xs), host.gradients(chain(plain), xs))


def test_values_alone_are_those_of_numpy():
    blocks = [(np.sin, np.cos)]
    close(pb.reversible(blocks)(X, Z), plain(blocks)(X, Z))


# ── kept bytes ───────────────────────────────────────────────────────────────────────────────────────────

SIDE = 64
LARGE = SIDE * SIDE


def blocks(depth):
    def half(x):
        return 0.1 * namespace(x).sin(namespace(x).tanh(x))

    return [(half, half)] * depth


def kept_by_tensorflow(chain):
    def count():
        gc.collect()
        found = [o for o in gc.get_objects() if issubclass(type(o), tf.__internal__.EagerTensor)]
        large = [o for o in found if o.dtype == tf.float32 and o.shape.num_elements() >= LARGE]
        return len({np.frombuffer(memoryview(o)).ctypes.data for o in large})

    x = tf.ones([SIDE, SIDE])
    before = count()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = chain(x, x)
    found = count() - before
    del y, tape
    return found


def kept_by_jax(chain):
    _, residuals = jax.eval_shape(lambda x: jax.vjp(lambda x: chain(x, x), x), jnp.ones((SIDE, SIDE)))
    return sum(leaf.size >= LARGE for leaf in jax.tree.leaves(residuals))


def kept_by_torch(chain):
    """Count the large tensors that live on, whoever holds them."""

    def count():
        gc.collect()
        found = [o for o in gc.get_objects() if type(o) is torch.Tensor]  # no stand-ins of a compiler
        return len({o.data_ptr() for o in found if o.numel() >= LARGE})

    x, saved = torch.ones(SIDE, SIDE, requires_grad=True), []
    before = count()

    def keep(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = chain(x, x)
    found = count() - before
    del y
    return found


KEPT = {"tensorflow": kept_by_tensorflow, "jax": kept_by_jax, "torch": kept_by_torch}


@pytest.mark.parametrize("name", HOSTS)
def test_what_is_kept_does_not_grow_with_depth(name):
    shallow, far = (KEPT[name](pb.reversible(blocks(depth))) for depth in (1, 6))
    assert far == shallow <= 4  # the two ends of the chain, of two halves each
    assert KEPT[name](plain(blocks(6))) >= 12


# ── drift ────────────────────────────────────────────────────────────────────────────────────────────────


def drifting(host, **options):
    """Differentiate a chain whose blocks add far more than there is."""
    return host.gradients(deep(pb.reversible, depth=4, scale=1e4, **options), given(host))


def test_a_drift_is_warned_of(host):
    with pytest.warns(pb.errors.DriftWarning, match=r"4 blocks recover are off by .*(?s:.)*at most 0\.001"):
        drifting(host)


def test_a_drift_is_warned_of_where_the_first_functions_are_not_recorded():
    x1 = torch.tensor(X, requires_grad=True)
    y1, _ = deep(pb.reversible, depth=4, scale=1e4)(x1, torch.tensor(Z), torch.tensor(W))
    with pytest.warns(pb.errors.DriftWarning, match="off by"):
        y1.sum().backward()


def test_a_drift_is_not_asked_about(host):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drifting(host, drift=None)
        drifting(host, drift=1e9)


def test_a_drift_is_warned_of_by_a_compiled_program():
    def step(*xs):
        return sum(y.sum() for y in deep(pb.reversible, depth=4, scale=1e4)(*xs))

    def run():
        jax.block_until_ready(jax.jit(jax.grad(step))(X, Z, W))
        jax.effects_barrier()

    with pytest.warns(pb.errors.DriftWarning, match="off by"):
        run()


@pytest.mark.parametrize("jit", [False, True])
def test_a_drift_ends_a_graph_and_is_nan_under_xla(jit):
    @tf.function(jit_compile=jit)
    def step(x, z, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = deep(pb.reversible, depth=4, scale=1e4)(x, z, w)
        return tape.gradient(y, x)

    if jit:
        assert np.isnan(step(X, Z, W)).all()
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="recover are off by"):
            step(X, Z, W)


# ── random numbers, layers and modules ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("jit", [None, False, True], ids=["eager", "graph", "xla"])
def test_layers_drop_the_same(jit):
    layers = [(keras.layers.Dropout(0.5), keras.layers.Dense(2)) for _ in range(2)]
    blocks = [(lambda x, d=d, e=e: 0.3 * d(e(x), training=True), e) for d, e in layers]
    x, z = tf.constant(X), tf.constant(Z)
    plain(blocks)(x, z)  # builds them
    seeds = [d.seed_generator.state for d, _ in layers]
    before, found = [seed.numpy() for seed in seeds], []
    for wrap in (plain, pb.reversible):

        def step(wrap=wrap):
            with tf.GradientTape() as tape:
                tape.watch([x, z])
                y1, y2 = wrap(blocks)(x, z)
                loss = tf.reduce_sum(y1**3) + tf.reduce_sum(y2**2)
            weights = [v.value for _, e in layers for v in e.trainable_variables]
            return [loss, *tape.gradient(loss, [x, z, *weights])]

        run = step if jit is None else tf.function(step, jit_compile=jit)
        found.append([*run(), *(seed.numpy() for seed in seeds)])
        for seed, value in zip(seeds, before):
            seed.assign(value)
    close(*found, tolerance=1e-4)


def test_layers_that_a_model_builds():
    inputs = keras.Input((3,)), keras.Input((2,))
    layers = [keras.layers.Dense(units) for units in (3, 2, 3, 2)]
    pairs = [layers[:2], layers[2:]]
    model = keras.Model(inputs, pb.reversible(pairs)(*inputs))
    assert len(model.trainable_weights) == 8
    given = np.ones((4, 3), np.float32), np.ones((4, 2), np.float32)
    close(model(given), plain(pairs)(*given))


def modules():
    torch.manual_seed(1)
    return [
        (
            torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.Tanh()),
            torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2)),
        )
        for _ in range(3)
    ]


def test_modules_drop_the_same_and_count_once():
    found = []
    for wrap in (plain, pb.reversible):
        pairs = modules()
        weights = [p for pair in pairs for module in pair for p in module.parameters()]
        x, z = (torch.tensor(v, requires_grad=True) for v in (X, Z))
        y1, y2 = wrap(pairs)(x, z)
        gradients = torch.autograd.grad((y1**3).sum() + (y2**2).sum(), [x, z, *weights])
        found.append([*gradients, pairs[0][1][0].running_mean, pairs[0][1][0].num_batches_tracked])
    close(*found)


def test_keys_that_a_program_closes_over():
    def f(wrap):
        def g(x, z, key):
            return wrap([(lambda x: x * jax.random.normal(key, x.shape), jnp.sin)])(x, z)

        return jax.jit(jax.grad(lambda x, z, key: sum(y.sum() for y in g(x, z, key)), (0, 1)))

    key = jax.random.key(3)
    close(f(pb.reversible)(X, Z, key), f(plain)(X, Z, key))


def test_a_graph_is_gone_through_twice():
    x, z, w = (torch.tensor(v, requires_grad=True) for v in (X, Z, W))
    y1, y2 = deep(pb.reversible)(x, z, w)
    once = torch.autograd.grad((y1 * y2).sum(), [x, z, w], retain_graph=True)
    close(torch.autograd.grad((y1 * y2).sum(), [x, z, w]), once)
    close(
        torch.autograd.grad(deep(pb.reversible)(x, z, w)[0].sum(), w),
        torch.autograd.grad(deep(plain)(x, z, w)[0].sum(), w),
    )


def test_an_output_that_is_changed_in_place_is_refused():
    x = torch.tensor(X, requires_grad=True)
    y1, y2 = deep(pb.reversible)(x, torch.tensor(Z), torch.tensor(W))
    y1 += 1
    with pytest.raises(pb.errors.DerivativeError, match="changed in place"):
        (y1 + y2).sum().backward()


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("blocks", [[], None, [np.sin, np.cos], [(np.sin,)], [(np.sin, 3)], "fg"])
def test_what_is_no_list_of_pairs_is_refused(blocks):
    with pytest.raises(pb.errors.DefinitionError, match="reversible"):
        pb.reversible(blocks)


@pytest.mark.parametrize("drift", [0, -1.0, "small"])
def test_a_drift_that_is_none_is_refused(drift):
    with pytest.raises(pb.errors.OptionError, match="drift"):
        pb.reversible([(np.sin, np.cos)], drift=drift)


@pytest.mark.parametrize(
    ("half", "said"),
    [
        (lambda x: namespace(x).sum(x), r"returned float32 \(\)"),
        (lambda x: x[:1], r"returned float32 \(1, 2\)"),
        (lambda x: (x, x), "returned a tuple"),
        (lambda x: None, "returned a NoneType"),
    ],
)
def test_what_cannot_be_taken_away_again_is_refused(host, half, said):
    chain = pb.reversible([(half, lambda x: x)])
    with pytest.raises(pb.errors.UnsupportedInputError, match=said):
        host.gradients(chain, [host.tensor(X), host.tensor(Z)])


def test_what_is_no_pair_of_tensors_is_refused():
    chain = pb.reversible([(tf.sin, tf.cos)])
    with pytest.raises(pb.errors.NoTensorError, match="x1 is a structure"):
        chain([tf.constant(X)], tf.constant(Z))
