"""Any solver will do: one of NumPy, a loop of a program, one that the checker judges; it keeps nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from asking import HOSTS

import pullback as pb
from pullback.hosts.torch.private import tracing_backend
from pullback.record.listening import recording
from pullback.record.recorder import Recorder

on_every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
X = np.array([4.0, 9.0])
SLOPE = 0.5 / np.sqrt(X)


def square(z, x):
    return z * z - x


def by_numpy(x):
    """A solver that sees arrays only."""
    return np.sqrt(np.asarray(x, np.float64))


foreign = pb.implicit.root(square, by_numpy)
wrapped = pb.implicit.root(square, pb.external(by_numpy, output=lambda x: x))


@on_every_host
@pytest.mark.parametrize("solve", [foreign, wrapped], ids=["plain", "external"])
def test_a_solver_of_numpy_has_gradients(host, solve):
    xs = [X.astype(np.float32)] if solve is foreign else [X]
    ask = host.otherwise if host.name == "jax" else host.pulled  # numbers, not a program
    value, (dx,) = ask(solve, xs, np.ones_like(xs[0]))
    assert value.dtype == xs[0].dtype
    np.testing.assert_allclose(dx, SLOPE, rtol=1e-6)


def test_an_external_solver_is_called_by_programs():
    assert np.allclose(jax.jit(jax.grad(lambda x: wrapped(x).sum()))(jnp.asarray(X)), SLOPE)
    batches = jax.vmap(jax.grad(lambda x: wrapped(x).sum()))(jnp.stack([X, 4 * X]))
    np.testing.assert_allclose(batches, [SLOPE, SLOPE / 2])
    batches = torch.func.vmap(torch.func.grad(lambda x: wrapped(x).sum()))(
        torch.as_tensor(np.stack([X, 4 * X]))
    )
    np.testing.assert_allclose(batches, [SLOPE, SLOPE / 2])


def test_a_loop_of_the_program_is_not_differentiated():
    @pb.implicit.root(square)
    def looped(x):
        return jax.lax.while_loop(
            lambda z: jnp.any(jnp.abs(z * z - x) > 1e-12), lambda z: (z + x / z) / 2, jnp.ones_like(x)
        )

    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: looped(x).sum()))(jnp.asarray(X)), SLOPE)
    hessian = jax.jit(jax.hessian(lambda x: looped(x).sum()))(jnp.asarray(X))
    np.testing.assert_allclose(np.diag(hessian), -0.25 * X**-1.5)

    @pb.implicit.root(square)
    def traced(x):
        z = tf.ones_like(x)
        while tf.reduce_any(tf.abs(z * z - x) > 1e-12):
            z = (z + x / z) / 2
        return z

    @tf.function(jit_compile=True)
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(tf.constant(X)), SLOPE)


def test_pytorch_compiles_it():
    solve = pb.implicit.root(square, torch.sqrt)
    x = torch.tensor(X, requires_grad=True)
    compiled = torch.compile(lambda x: solve(x).sum(), backend=tracing_backend(), fullgraph=True)
    np.testing.assert_allclose(torch.autograd.grad(compiled(x), x)[0], SLOPE)


@pytest.mark.parametrize("iterations", [3, 300])
def test_a_tape_keeps_the_same_however_often_a_solver_loops(iterations):
    @pb.implicit.fixed_point(lambda z, x: torch.cos(x * z), tolerance=1.0)
    def solve(x):
        z = torch.full_like(x, 0.7)
        for _ in range(iterations):
            z = torch.cos(x * z)
        return z

    x, saved = torch.full([4], 0.5, dtype=torch.float64, requires_grad=True), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t):
        y = solve(x)
    assert len(saved) == 2, "the solution and the argument"
    assert y.requires_grad


# ── the checker ──────────────────────────────────────────────────────────────────────────────────────────


BRIEF = {"xla": False, "export": False}  # modes that are asked for above


def sine(z, x):
    return pb.namespace(z).sinh(z) - x


@pb.implicit.root(sine)
def arsinh(x):
    return pb.namespace(x).asinh(x)


@on_every_host
def test_the_checker_finds_a_solution_right(host):
    assert pb.check(arsinh, host.tensor(X), **BRIEF).verdict == "right"


def test_the_checker_finds_a_large_solution_right_in_float64():
    """Its systems are solved by iteration; that the gradient has all digits of the dtype is judged too."""
    assert pb.check(arsinh, torch.linspace(-2, 3, 40, dtype=torch.float64), **BRIEF).verdict == "right"


def test_the_checker_finds_a_solver_of_numpy_right():
    by_numpy = pb.implicit.root(sine, lambda x: np.arcsinh(np.asarray(x)))
    assert pb.check(by_numpy, torch.tensor(X), **BRIEF).verdict == "right"


def test_the_checker_catches_a_condition_that_is_another_around_the_solution():
    off = pb.implicit.root(lambda z, x: 2 * sine(z, x) + (x - x.detach()), torch.asinh)
    assert pb.check(off, torch.tensor(X), **BRIEF).verdict == "wrong"


def test_a_recorder_hears_of_solutions_and_not_of_what_confirms_them():
    """What runs a condition has no gradient to be checked."""
    x = torch.tensor(X, requires_grad=True)
    with recording(Recorder(everything=True)) as recorder:
        pb.implicit.root(sine, torch.asinh)(x)
        pb.implicit.fixed_point(lambda z, x: (z + x) / 2, lambda x: 1 * x)(x)
        pb.implicit.argmin(lambda z, x: ((z - x) ** 2).sum(), lambda x: 1 * x)(x)
        pb.implicit.linear_solve(lambda v, d: d * v, x, x)
    names = [rule.name.rpartition(".")[2] for rule in recorder.rules.values()]
    assert sorted(names) == ["<lambda>", "<lambda>", "asinh", "linear_solve"]
    assert not recorder.errors
