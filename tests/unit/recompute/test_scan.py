"""`pb.checkpoint_scan`: the values and gradients of the loop, with few states kept."""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from three_hosts import close

import pullback as pb
from pullback.recompute import schedule

W = np.array([[0.5, -1.0], [0.7, 0.25]], np.float32)
C = np.array([[0.3, -0.7]], np.float32)


def rows(length):
    return np.sin(np.arange(2.0 * length, dtype=np.float32)).reshape(length, 1, 2)


def scanned(slots):
    def f(c, x, w):
        xp = pb.namespace(c)

        def step(carry, x):
            h = xp.tanh(carry["h"] @ w + x)
            return {"h": h}, {"square": h * h}

        carry, ys = pb.checkpoint_scan(step, {"h": c}, x, slots=slots)
        return carry["h"], ys["square"]

    return f


def looped(c, x, w):
    xp, ys = pb.namespace(c), []
    for i in range(x.shape[0]):
        c = xp.tanh(c @ w + x[i])
        ys.append(c * c)
    return c, xp.stack(ys)


@functools.cache
def expected(host, length):
    return host.gradients(looped, [host.tensor(v) for v in (C, rows(length), W)])


@pytest.mark.parametrize(
    ("length", "slots", "compiled"),
    [
        (1, None, False),
        (7, None, False),
        (5, 0, False),
        (5, 1, False),
        (5, 9, False),
        (7, None, True),
        (6, 2, True),
    ],
)
def test_gradients_are_those_of_the_loop(host, length, slots, compiled):
    xs = [host.tensor(v) for v in (C, rows(length), W)]
    close(host.gradients(scanned(slots), xs, compiled=compiled), expected(host, length))


def test_no_steps_at_all(host):
    c, ys = scanned(None)(host.tensor(C), host.tensor(rows(0)), host.tensor(W))
    close([c], [C])
    assert tuple(ys.shape) == (0, 1, 2)


def test_steps_without_rows(host):
    def f(c):
        return pb.checkpoint_scan(lambda c, x: (c * c, None), c, length=3)[0]

    close(host.gradients(f, [host.tensor(C)]), [16 * C**15])


def test_forward_mode(host):
    def through(f):
        return lambda c: f(c, host.tensor(rows(4)), host.tensor(W))

    c, dc = host.tensor(C), host.tensor(W[:1])
    close([host.push(through(scanned(None)), c, dc)], [host.push(through(looped), c, dc)])


def test_second_order(host):
    def second(f):
        x, w = host.tensor(rows(4)), host.tensor(W)
        return host.gradients(lambda c: host.gradient(lambda c: f(c, x, w), c), [host.tensor(C)])

    close(second(scanned(None)), second(looped), 1e-4)


def test_values_of_numpy():
    close(scanned(None)(C, rows(5), W), looped(C, rows(5), W))


# ── kept bytes ───────────────────────────────────────────────────────────────────────────────────────────


def temporary(loop):
    """Bytes that a compiled gradient needs beside its arguments and results."""
    compiled = jax.jit(jax.grad(lambda c: jnp.sum(loop(c)))).lower(jnp.ones((256,))).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def long_step(c, x):
    return jnp.sin(jnp.cos(c) * jnp.sin(c)), None


def test_few_states_are_kept():
    plain = temporary(lambda c: jax.lax.scan(long_step, c, None, 1024)[0])
    assert temporary(lambda c: pb.checkpoint_scan(long_step, c, length=1024)[0]) < 0.1 * plain


@pytest.mark.parametrize(("slots", "most"), [(3, 9), (None, 18)])
def test_the_slots_are_what_is_kept(slots, most):
    alive = [0]

    def step(c, _):
        tensors = [o for o in gc.get_objects() if type(o) is torch.Tensor and o.numel() == 777]
        alive[0] = max(alive[0], len({o.data_ptr() for o in tensors}))
        return torch.sin(c), None

    c = torch.ones(777, requires_grad=True)
    pb.checkpoint_scan(step, c, length=40, slots=slots)[0].sum().backward()
    assert alive[0] <= most


# ── random numbers and variables in a loop of a graph ────────────────────────────────────────────────────


@pytest.mark.parametrize("graph", [False, True])
def test_every_round_draws_its_own_numbers_and_the_second_run_the_same(graph):
    w = tf.Variable(1.5)

    def f(c):
        def step(c, _):
            c = c * tf.random.uniform([64], 0.5, 1.5) * w
            return c, c

        return pb.checkpoint_scan(step, c, length=5)

    def run(c):
        with tf.GradientTape() as tape:
            tape.watch(c)
            last, ys = f(c)
            loss = tf.reduce_sum(last)
        return last, ys, *tape.gradient(loss, [c, w])

    last, ys, dc, dw = (tf.function(run) if graph else run)(tf.ones([64]))
    close([dc, dw], [last, 5 / 1.5 * tf.reduce_sum(last)], 1e-4)  # linear in c, of degree five in w
    factors = ys[1:] / ys[:-1]
    assert not np.allclose(factors[0], factors[1])


def test_a_variable_that_is_changed_in_a_loop_of_a_graph_is_refused():
    count = tf.Variable(0.0, trainable=False)

    def step(c, _):
        count.assign_add(1.0)
        return c * 2, None

    with pytest.raises(pb.errors.DerivativeError, match="changes a variable in a loop of the graph"):
        tf.function(lambda c: pb.checkpoint_scan(step, c, length=9)[0])(tf.ones([2]))


# ── bad input ────────────────────────────────────────────────────────────────────────────────────────────


def keep(c, x):
    return c, x


@pytest.mark.parametrize(
    ("step", "args", "options", "text"),
    [
        (keep, (C, [rows(3), rows(4)]), {}, "xs of shapes (3, 1, 2), (4, 1, 2)"),
        (keep, (C, rows(3)), {"length": 4}, "length=4"),
        (keep, (C,), {}, "no xs"),
        (keep, (C, rows(3)), {"slots": -1}, "slots=-1"),
        (keep, ((), rows(3)), {}, "an empty carry"),
        (keep, ("a", rows(3)), {}, "no tensor"),
        (lambda c, x: c, (C, rows(3)), {}, "returned a ndarray"),
        (lambda c, x: ((c, c), x), (C, rows(3)), {}, "shape and dtype"),
        (lambda c, x: (c[:, :1], x), (C, rows(3)), {}, "(1, 1)"),
        (3, (C, rows(3)), {}, "step"),
    ],
)
def test_bad_input_is_named(step, args, options, text):
    with pytest.raises(pb.errors.PullbackError) as error:
        pb.checkpoint_scan(step, *args, **options)
    assert text in str(error.value)


# ── the schedule ─────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def fewest(length, slots):
    """The fewest steps, over all ways to cut."""
    if length <= 1:
        return 0
    if slots == 0:
        return length * (length - 1) // 2
    ways = range(1, length)
    return min(m + fewest(length - m, slots - 1) + fewest(m, slots) for m in ways)


@pytest.mark.parametrize("slots", range(5))
def test_the_schedule_runs_the_fewest_steps(slots):
    for length in range(1, 40):
        cut = schedule.cut(length, slots)
        assert sum(schedule.sizes(cut)) == length
        assert schedule.runs(cut) == fewest(length, slots)
