"""An output that a program does not differentiate may have no gradient: what it relies on is judged."""

import functools

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback.checker.settings import Settings
from pullback.record.checking import checked
from pullback.record.listening import recording
from pullback.record.recorder import Recorder

SETTINGS = Settings(seed=1, order=1, export=False, xla=False)
X = [0.3, 0.7, -1.2]


class Solved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**2, torch.sin(x)

    @staticmethod
    def backward(ctx, g, state):
        (x,) = ctx.saved_tensors
        return None if g is None else ctx.factor * x * g, None


class Unfilled(Solved):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.set_materialize_grads(False)
        return Solved.forward(ctx, x, factor)


def in_torch(rule, used, factor):
    x = torch.tensor(X, requires_grad=True)
    rule.apply(x, factor)[used].sum().backward()


def transformed(used, factor):
    class Apart(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**2, torch.sin(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g, state):
            return factor * ctx.saved_tensors[0] * g

    torch.func.grad(lambda x: Apart.apply(x)[used].sum())(torch.tensor(X))


def by_jax(factor):
    @jax.custom_vjp
    def solved(x):
        return {"solution": x**2, "state": jnp.sin(x), "steps": jnp.int32(3)}

    def fwd(x):
        return solved(x), x

    def bwd(x, g):
        return (factor * x * g["solution"],)

    solved.defvjp(fwd, bwd)
    return lambda x: tuple(solved(x)[key] for key in ("solution", "state"))


def in_jax(used, factor):
    solved = by_jax(factor)
    jax.grad(lambda x: solved(x)[used].sum())(jnp.array(X))


def jitted(used, factor):
    solved = by_jax(factor)
    jax.jit(jax.grad(jax.jit(lambda x: solved(x)[used].sum())))(jnp.array(X))


def mapped(used, factor):
    solved = by_jax(factor)
    jax.jit(jax.vmap(jax.grad(lambda x: solved(x)[used].sum())))(jnp.array([X, X]))


def by(maker, framework, factor):
    @maker
    def solved(x):
        def grad(g, state):
            return factor * x * g

        return (x**2, framework.sin(x)), grad

    return solved


def in_tensorflow(used, factor):
    x, solved = tf.constant(X), by(tf.custom_gradient, tf, factor)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(solved(x)[used])
    tape.gradient(y, x)


def in_graph(used, factor):
    solved = by(tf.custom_gradient, tf, factor)

    @tf.function
    def gradient(x):
        return tf.gradients(tf.reduce_sum(solved(x)[used]), x)

    gradient(tf.constant(X))


def in_function(used, factor):
    tf.function(in_tensorflow)(used, factor)


def own_torch(used, factor):
    x = torch.tensor(X, requires_grad=True)
    by(pb.custom_gradient, torch, factor)(x)[used].sum().backward()


def own_tensorflow(used, factor):
    solved, x = by(pb.custom_gradient, tf, factor), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(solved(x)[used])
    tape.gradient(y, x)


PROGRAMS = {
    "torch": functools.partial(in_torch, Solved),
    "torch, nothing filled in": functools.partial(in_torch, Unfilled),
    "torch.func": transformed,
    "jax": in_jax,
    "jax.jit": jitted,
    "jax.vmap": mapped,
    "tensorflow": in_tensorflow,
    "tf.function": in_function,
    "tf.gradients": in_graph,
    "pullback, torch": own_torch,
    "pullback, tensorflow": own_tensorflow,
}


def reports(program, used, factor):
    recorder = Recorder()
    with recording(recorder):
        PROGRAMS[program](used, factor)
    assert recorder.errors == []
    (rule,) = recorder.rules.values()
    return [entry.report for entry in checked(rule, target="", settings=SETTINGS)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_not_differentiated_is_not_judged(program):
    for report in reports(program, 0, 2):
        assert report.verdict == "right", str(report)
        (note,) = [f.sentence for f in report.findings if f.probe == "outputs"]
        assert "no gradient comes from `output[" in note
        assert "this program asks for none" in note


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_differentiated_is_judged(program):
    for report in reports(program, 1, 2):
        assert report.verdict == "wrong"


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_other_outputs_are_judged(program):
    for report in reports(program, 0, 3):
        assert report.verdict == "wrong"
        assert any("for k in [0" in failure.reproducer for failure in report.failures)


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        state = torch.sin(x)
        ctx.mark_non_differentiable(state)
        return x**2, state

    @staticmethod
    def backward(ctx, g, state):
        return 2 * ctx.saved_tensors[0] * g


def test_an_output_that_is_said_to_have_no_gradient_is_not_told_of():
    recorder = Recorder()
    with recording(recorder):
        Kept.apply(torch.tensor(X, requires_grad=True))[0].sum().backward()
    (rule,) = recorder.rules.values()
    (entry,) = checked(rule, target="", settings=SETTINGS)
    assert entry.report.verdict == "right"
    assert "outputs" not in [f.probe for f in entry.report.findings]
