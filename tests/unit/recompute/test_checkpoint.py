"""`pb.checkpoint`: the values and gradients of the function, run again as it ran."""

import gc

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
W = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)
MODES = [False, True]


@tf.autograph.experimental.do_not_convert
def namespace(x):
    """Spare AutoGraph the source of the library."""
    return pb.namespace(x)


def block(x, w, *, scale, word="none", table=None):
    """Keywords, statics, structures in and out."""
    xp = namespace(x)
    h = xp.tanh(x @ w) * scale
    return {
        "h": h * h,
        "more": [xp.sum(xp.sin(h)), word, xp.astype(xp.sum(h) > 0, xp.int32)],
        "t": table["t"] * h,
    }


def called(f):
    return lambda x, w, s, t: f(x, w, scale=s, table={"t": t}, word="w")


@pytest.mark.parametrize("compiled", MODES)
def test_gradients_are_those_of_the_function(host, compiled):
    xs = [host.tensor(v) for v in (X, W, X[0], X[1])]
    close(
        host.gradients(called(pb.checkpoint(block)), xs, compiled=compiled),
        host.gradients(called(block), xs, compiled=compiled),
    )


def test_structures_come_out_as_they_are(host):
    made = called(pb.checkpoint(block))(*(host.tensor(v) for v in (X, W, X[0], X[1])))
    assert made["more"][1] == "w"
    assert "int32" in str(made["more"][2].dtype)


@pytest.mark.parametrize("compiled", MODES)
def test_a_tensor_of_a_closure_gets_its_gradient(host, compiled):
    def through(wrap):
        def f(x, w):
            return wrap(lambda x: namespace(x).sin(x * w))(x)

        return f

    xs = [host.tensor(X), host.tensor(W)]
    found = host.gradients(through(pb.checkpoint), xs, compiled=compiled)
    close(found, host.gradients(through(lambda f: f), xs))


def test_second_order_is_that_of_the_function(host):
    def second(f):
        return host.gradients(lambda x: host.gradient(f, x), [host.tensor(X)])

    def f(x):
        return namespace(x).sin(x * x)

    close(second(pb.checkpoint(f)), second(f))


@pytest.mark.parametrize("compiled", MODES)
def test_forward_mode_is_that_of_the_function(host, compiled):
    def f(x):
        return namespace(x).tanh(x @ x)

    x, dx = host.tensor(X), host.tensor(W)
    close([host.push(pb.checkpoint(f), x, dx, compiled=compiled)], [host.push(f, x, dx)])


def test_a_checkpoint_in_a_checkpoint(host):
    inner = pb.checkpoint(lambda x: namespace(x).sin(x) * x)
    x = [host.tensor(X)]
    close(
        host.gradients(pb.checkpoint(lambda x: inner(inner(x))), x),
        host.gradients(lambda x: inner(inner(x)), x),
    )


def test_an_empty_batch(host):
    x = host.tensor(np.zeros((0, 2), np.float32))
    assert host.gradients(pb.checkpoint(lambda x: namespace(x).sin(x)), [x])[0].shape == (0, 2)


def test_values_alone_are_those_of_numpy():
    assert pb.checkpoint(lambda x: x * 2)(np.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("given", [None, 3, "tanh"])
def test_what_is_no_function_is_refused(given):
    with pytest.raises(pb.errors.PullbackError, match="checkpoint"):
        pb.checkpoint(given)


# ── kept bytes ───────────────────────────────────────────────────────────────────────────────────────────

SIDE = 64


def chain(x):
    for _ in range(8):
        x = namespace(x).sin(x) * 1.5
    return x


def kept_by_tensorflow(f):
    def count():
        gc.collect()
        found = [o for o in gc.get_objects() if issubclass(type(o), tf.__internal__.EagerTensor)]
        large = [o for o in found if o.dtype == tf.float32 and o.shape.num_elements() >= SIDE * SIDE]
        return len({np.frombuffer(memoryview(o)).ctypes.data for o in large})

    x = tf.ones([SIDE, SIDE])
    before = count()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(f(x))
    found = count() - before
    del y, tape
    return found


def kept_by_jax(f):
    _, residuals = jax.eval_shape(lambda x: jax.vjp(lambda x: f(f(x)), x), jnp.ones((SIDE, SIDE)))
    return sum(leaf.size >= SIDE * SIDE for leaf in jax.tree.leaves(residuals))


def kept_by_torch(f):
    kept = {}

    def keep(tensor):
        if tensor.numel() >= SIDE * SIDE:
            kept[tensor.data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        f(f(torch.ones(SIDE, SIDE, requires_grad=True)))
    return len(kept)


KEPT = {"tensorflow": kept_by_tensorflow, "jax": kept_by_jax, "torch": kept_by_torch}


@pytest.mark.parametrize("name", HOSTS)
def test_the_inputs_of_the_blocks_are_kept_and_nothing_else(name):
    # of two blocks: both outputs where tensors are counted, both inputs where residuals are
    assert KEPT[name](pb.checkpoint(chain)) <= 2
    assert KEPT[name](chain) >= 8


# ── random numbers ───────────────────────────────────────────────────────────────────────────────────────

ONES = np.ones(64, np.float32)
DRAWS = {
    "uniform": lambda s: tf.random.uniform(s),
    "integers": lambda s: tf.cast(tf.random.uniform(s, maxval=9, dtype=tf.int32), tf.float32),
    "normal": lambda s: tf.random.normal(s),
    "truncated": lambda s: tf.random.truncated_normal(s),
    "shuffle": lambda s: tf.random.shuffle(tf.range(64.0)),
    "categorical": lambda s: tf.cast(tf.random.categorical(tf.zeros([1, 9]), 64)[0], tf.float32),
    "gamma": lambda s: tf.random.gamma(s, 2.0),
    "poisson": lambda s: tf.random.poisson(s, 5.0),
    "dropout": lambda s: tf.nn.dropout(tf.ones(s), 0.5),
}


@pytest.mark.parametrize("jit", [None, False, True], ids=["eager", "graph", "xla"])
@pytest.mark.parametrize("name", DRAWS)
def test_a_second_run_draws_the_same_numbers(name, jit):
    if jit and name in ("shuffle", "gamma", "poisson"):
        jit = False  # XLA knows no stateless one of them
    block = pb.checkpoint(lambda x: x * DRAWS[name](x.shape))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = block(block(x))
        return y, tape.gradient(y, x)

    run = step if jit is None else tf.function(step, jit_compile=jit)
    y, dx = run(tf.constant(ONES))
    close([y], [dx])  # linear in x, at ones
    other, dx = run(tf.constant(ONES))
    close([other], [dx])
    assert not np.allclose(other, y)  # a new draw in every call


def test_numbers_follow_the_seed():
    def drawn():
        tf.random.set_seed(3)
        x = tf.constant(ONES)
        with tf.GradientTape() as tape:
            tape.watch(x)
            return pb.checkpoint(lambda x: x * tf.random.uniform([64]))(x).numpy()

    close([drawn()], [drawn()])


@pytest.mark.parametrize("jit", [None, False, True], ids=["eager", "graph", "xla"])
def test_layers_drop_the_same_and_change_their_state_once(jit):
    dropout, dense, norm = keras.layers.Dropout(0.5), keras.layers.Dense(3), keras.layers.BatchNormalization()
    x = tf.constant(np.sin(np.arange(24.0, dtype=np.float32)).reshape(4, 6))

    def layers(x):
        return norm(dense(dropout(x, training=True)), training=True)

    layers(x)
    state = [dropout.seed_generator.state, norm.moving_mean, norm.moving_variance]
    found = []
    for f in (layers, pb.checkpoint(layers)):
        before = [v.numpy() for v in state]

        def step(f=f):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x) ** 3
            return y, tape.gradient(y, [x, *(v.value for v in dense.trainable_variables)])

        y, gradients = (step if jit is None else tf.function(step, jit_compile=jit))()
        found.append([y, *gradients, *(v.numpy() for v in state)])
        for variable, value in zip(state, before):
            variable.assign(value)
    close(*found, tolerance=1e-4)


def test_a_variable_that_changed_since_is_read_as_it_was():
    w, x = tf.Variable([2.0, 3.0]), tf.constant([1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pb.checkpoint(lambda x: x * w * w)(x)
    w.assign([50.0, 60.0])
    dx, dw = tape.gradient(y, [x, w])
    close([dx, dw], [[4.0, 9.0], [4.0, 6.0]])
    close([w], [[50.0, 60.0]])


def test_a_counter_counts_once():
    count = tf.Variable(0, trainable=False)

    def f(x):
        count.assign_add(1)
        return x * tf.cast(count, x.dtype)

    x = tf.constant([2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pb.checkpoint(f)(x)
    close([tape.gradient(y, x), count], [[1.0], 1])


def test_a_variable_inside_a_compiled_function_gets_its_gradient():
    w, x = tf.Variable([2.0, 3.0]), tf.constant([1.0, 2.0])
    compiled = tf.function(lambda x: x * w * w)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pb.checkpoint(lambda x: compiled(x) + w)(x)
    close(tape.gradient(y, [x, w]), [[4.0, 9.0], [5.0, 13.0]])


AROUND = {
    "function": lambda block: tf.function(block),
    "branch": lambda block: lambda x: tf.cond(x[0] > 0, lambda: block(x), lambda: x),
    "loop": lambda block: (
        lambda x: tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, block(y)), [0, x], maximum_iterations=2
        )[1]
    ),
}


@pytest.mark.parametrize("around", AROUND)
def test_a_tensor_that_a_compiled_function_reads_gets_its_gradient(around):
    """Functions read it as the outer graph knows it, operations as the inner one does: it is one."""
    found = []
    for kept in (lambda f: f, pb.checkpoint):

        @tf.function
        def gradients(x, c, kept=kept):
            with tf.GradientTape() as tape:
                tape.watch([x, c])
                d = c * 0.5
                inner = tf.function(lambda x: x * d)
                first, second = kept(lambda x: tf.sin(inner(x))), kept(lambda x: inner(x) * d + inner(d))
                y = AROUND[around](lambda x: second(first(x)))(x)
            return tape.gradient(y, [x, c])

        found.append(gradients(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])))
    for mine, theirs in zip(*found):
        np.testing.assert_allclose(theirs, mine, rtol=1e-5)


@pytest.mark.parametrize("graph", [False, True])
def test_numbers_that_a_compiled_function_hides_are_refused(graph):
    hidden = tf.function(lambda x: x * tf.random.uniform([2]))
    hidden(tf.ones([2]))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            return pb.checkpoint(lambda x: hidden(x) * x)(x)

    with pytest.raises(pb.errors.DerivativeError, match="draws random numbers in a way that is not seen"):
        (tf.function(step) if graph else step)(tf.ones([2]))


def test_numbers_drawn_in_a_loop_of_the_graph_are_refused():
    @tf.function
    def step(x):
        def f(x):
            return tf.while_loop(
                lambda i, x: i < 3, lambda i, x: (i + 1, x * tf.random.uniform([2])), (0, x)
            )[1]

        return pb.checkpoint(f)(x)

    with pytest.raises(pb.errors.DerivativeError, match="in a loop, a branch or a function of the graph"):
        step(tf.ones([2]))


def test_embeddings_of_a_variable():
    table, ids = tf.Variable(np.arange(6.0, dtype=np.float32).reshape(3, 2)), tf.constant([0, 2, 2])
    with tf.GradientTape() as tape:
        y = pb.checkpoint(lambda ids, scale: tf.gather(table, ids) * scale)(ids, tf.constant(3.0))
    close([tf.convert_to_tensor(tape.gradient(y, table))], [[[3, 3], [0, 0], [6, 6]]])


def test_a_module_drops_the_same_and_counts_once():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    x, found = torch.linspace(-1, 1, 15).reshape(5, 3).requires_grad_(), []
    start = {k: v.clone() for k, v in module.state_dict().items()}
    for f in (module, pb.checkpoint(module)):
        module.load_state_dict(start)
        torch.manual_seed(0)
        gradients = torch.autograd.grad((f(x) ** 3).sum(), [x, *module.parameters()])
        found.append([*gradients, module[1].running_mean.clone(), module[1].num_batches_tracked.clone()])
    close(*found)


def test_compiled_by_torch():
    w = torch.tensor([0.5, 0.25], requires_grad=True)
    block = pb.checkpoint(lambda x: torch.sin(x * x) * w)
    x = torch.tensor([0.3, 0.5], requires_grad=True)
    compiled = torch.compile(lambda x: block(x).sum(), backend="aot_eager")
    close(torch.autograd.grad(compiled(x), [x, w]), torch.autograd.grad(block(x).sum(), [x, w]))


def test_under_the_transforms_of_torch():
    f = pb.checkpoint(lambda x: torch.sin(x * x))
    x = torch.tensor([0.3, 0.5])
    close([torch.func.grad(lambda x: f(x).sum())(x)], [2 * x * torch.cos(x * x)])
    close([torch.func.vmap(f)(x)], [torch.sin(x * x)])
