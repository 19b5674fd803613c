"""Functions that return the same memory at every call: each result is that of its own call."""

import concurrent.futures
import ctypes
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
import torch
from frameworks import RUN, batch

import pullback as pb
from pullback.errors import ExternalError

X = np.arange(1.0, 13.0).reshape(4, 3)
WAYS = {
    "in line": dict,
    "a thread": lambda: {"executor": concurrent.futures.ThreadPoolExecutor(1)},
    "a cache": lambda: {"cache": 16},
    "a limit": lambda: {"timeout": 60},
}


def a_workspace():
    memory = np.zeros(3)
    return lambda value: np.multiply(value, 1, out=memory)


def a_part_of_a_workspace():
    memory = np.zeros((2, 3))
    return lambda value: np.multiply(value, 1, out=memory[1])


def memory_of_c():
    memory = (ctypes.c_double * 3)()

    def write(value):
        np.ctypeslib.as_array(memory)[:] = value
        return np.ctypeslib.as_array(memory).reshape(3)

    return write


MEMORY = [a_workspace, a_part_of_a_workspace, memory_of_c]


def squares(make, **options):
    """Square, with a pullback, each in memory that is written to again."""
    forth, back = make(), make()
    f = pb.external(lambda x: forth(x**2), output=lambda x: x, **options)
    f.pullback(lambda dy, x: back(2 * x * dy))
    return f


def gradients(framework, f):
    """Map the gradient of a function over the rows of X."""
    if framework == "jax":
        with jax.enable_x64(True):
            return jax.vmap(jax.grad(lambda x: f(x).sum()))(jnp.asarray(X))
    if framework == "torch":
        return torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(torch.tensor(X))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return tf.vectorized_map(gradient, tf.constant(X))


def one_by_one(framework, f):
    """Call a function for each row, and keep what the framework was given."""
    make = {"tensorflow": tf.constant, "jax": jnp.asarray, "torch": torch.tensor}[framework]
    with jax.enable_x64(True):
        kept = [f(make(x)) for x in X]
        return np.stack([np.asarray(y) for y in kept])


@pytest.mark.parametrize("make", MEMORY)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("framework", RUN)
def test_each_result_is_that_of_its_own_call(framework, way, make):
    np.testing.assert_array_equal(batch(framework, squares(make, **WAYS[way]()), X, axes=(0,)), X**2)
    np.testing.assert_array_equal(gradients(framework, squares(make, **WAYS[way]())), 2 * X)
    f = squares(make, **WAYS[way]())
    np.testing.assert_array_equal(one_by_one(framework, f), X**2)
    np.testing.assert_array_equal(one_by_one(framework, f), X**2)  # what is remembered, too


@pytest.mark.parametrize("make", MEMORY)
def test_an_array_keeps_its_result(make):
    f = squares(make)
    kept = [f(x) for x in X]
    np.testing.assert_array_equal(np.stack(kept), X**2)


@pytest.mark.parametrize("way", WAYS)
def test_results_inside_a_structure(way):
    memory = {"a": np.zeros(3), "b": [np.zeros(3)]}

    def f(x):
        memory["a"][:], memory["b"][0][:] = x, 2 * x
        return memory

    f = pb.external(f, output=lambda x: {"a": x, "b": [x]}, **WAYS[way]())
    y = tf.vectorized_map(f, tf.constant(X))
    np.testing.assert_array_equal(y["a"], X)
    np.testing.assert_array_equal(y["b"][0], 2 * X)


def test_differences_of_a_function_that_returns_its_workspace():
    memory = np.zeros(3)
    f = pb.external(lambda x: np.multiply(x, x, out=memory), output=lambda x: x, gradient="central")
    x = tf.constant(X[0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), 2 * X[0], rtol=1e-6)


def test_partial_derivatives_in_one_workspace():
    memory = np.zeros(3)
    partials = [lambda x, y: np.multiply(y, 1, out=memory), lambda x, y: np.multiply(x, 1, out=memory)]
    f = pb.external(lambda x, y: x * y, output=lambda x: x, partials=partials)
    x, y = tf.constant(X[0]), tf.constant(X[1])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y)
    dx, dy = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(dx, X[1])
    np.testing.assert_array_equal(dy, X[0])


def test_a_sparse_jacobian_whose_numbers_are_written_again():
    matrix = scipy.sparse.csr_matrix(np.eye(3))

    def jacobian(x):
        matrix.data[:] = 2 * x
        return matrix

    pool = concurrent.futures.ThreadPoolExecutor(1)
    f = pb.external(lambda x: x**2, output=lambda x: x, jacobian=jacobian, executor=pool)
    np.testing.assert_array_equal(gradients("torch", f), 2 * X)


# ── at the same time ─────────────────────────────────────────────────────────────────────────────────────


def at_once(f, retries=0):
    """Run a function for two elements at the same time, each in a thread."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        g = pb.external(f, output=lambda x: x, executor=pool, retries=retries)
        return tf.vectorized_map(g, tf.constant(X[:2])).numpy()


@pytest.mark.parametrize("retries", [0, 3])
def test_threads_that_write_to_the_same_memory_are_refused(retries):
    together, memory = threading.Barrier(2, timeout=30), np.zeros(3)

    def f(x):
        together.wait()
        memory[:] = x
        together.wait()
        return memory

    with pytest.raises(tf.errors.OpError, match="at the same time returned the same memory") as caught:
        at_once(f, retries)
    assert isinstance(pb.hosts.numpy.callback.original(caught.value), ExternalError)


def test_memory_for_each_thread_is_right():
    together, memory = threading.Barrier(2, timeout=30), threading.local()

    def f(x):
        if not hasattr(memory, "array"):
            memory.array = np.zeros(3)
        together.wait()
        memory.array[:] = x
        together.wait()
        return memory.array

    np.testing.assert_array_equal(at_once(f), X[:2])


def test_an_argument_may_be_returned_at_the_same_time():
    together = threading.Barrier(2, timeout=30)
    table = tf.constant(X[3])

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        f = pb.external(lambda x, t: (together.wait(), t)[1], output=lambda x: x, executor=pool)
        y = tf.vectorized_map(lambda x: f(x, table), tf.constant(X[:2]))
    np.testing.assert_array_equal(y, [X[3], X[3]])


def test_calls_one_after_another_in_several_threads_may_share_memory():
    memory = np.zeros(3)
    f = pb.external(lambda x: np.multiply(x, 1, out=memory), output=lambda x: x)
    for x in X:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            np.testing.assert_array_equal(pool.submit(f, x).result(), x)


def test_what_nobody_else_holds_is_not_copied():
    places = []

    def f(x):
        y = x * 2
        places.append(y.ctypes.data)
        return y

    for options in ({}, {"timeout": 60}, {"executor": concurrent.futures.ThreadPoolExecutor(1)}):
        y = pb.external(f, output=lambda x: x, **options)(np.ones(10_000))
        assert y.ctypes.data == places[-1]
