"""A call that cannot be made by itself is no wrong rule: what another call leaves for it, or nobody asks."""

import collections
import itertools

import jax
import jax.numpy as jnp
import pytest
import torch

from pullback.checker.settings import Settings
from pullback.record.checking import checked
from pullback.record.listening import recording
from pullback.record.recorder import Recorder
from pullback.report.entry import not_checked

SETTINGS = Settings(seed=1, order=1)


def rows(run):
    """Give what is said of each rule, and its verdicts."""
    recorder = Recorder()
    with recording(recorder):
        run()
    assert recorder.errors == []
    found = {}
    for rule in recorder.rules.values():
        entries = list(checked(rule, target="", settings=SETTINGS))
        found[rule.name] = (not_checked(entries), [entry.report.verdict for entry in entries])
    return found


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, memory, x):
        ctx.memory = memory
        ctx.save_for_backward(x)
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        put(ctx.memory, torch.cos(x))
        return g, None, None


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, memory):
        ctx.memory = memory
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        return g * take(ctx.memory), None


class Memory:
    value = None


def put(memory, value):
    if isinstance(memory, Memory):
        memory.value = value
    else:
        memory.append(value)


def take(memory):
    if not isinstance(memory, Memory):
        return memory.pop()
    value, memory.value = memory.value, None
    if value is None:
        raise RuntimeError("it was never set")
    return value


@pytest.mark.parametrize("memory", [lambda: collections.deque(maxlen=1), Memory], ids=["deque", "object"])
def test_a_gradient_that_needs_what_another_one_leaves_was_not_checked(memory):
    def run():
        shared, x = memory(), torch.randn(4, requires_grad=True)
        Recompute.apply(Checkpoint.apply(x, shared), shared, x.detach()).sum().backward()

    found = rows(run)
    said, verdicts = found["Checkpoint"]
    assert verdicts == ["undecided"]
    assert "in the program it does not" in said
    assert type(memory()).__name__ in said
    assert found["Recompute"] == ("", ["right"])


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, memory):
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        raise IndexError("there is none")


def test_a_gradient_that_raises_in_the_program_too_is_wrong():
    def run():
        with pytest.raises(IndexError):
            Raises.apply(torch.randn(4, requires_grad=True), 3.0).sum().backward()

    assert rows(run)["Raises"] == ("", ["wrong"])


COUNT = itertools.count()


@jax.custom_vjp
def drawn(x):
    return x * jax.random.normal(jax.random.key(next(COUNT)), x.shape)


drawn.defvjp(lambda x: (drawn(x), None), lambda _, g: (g,))


def test_a_forward_that_draws_is_wrong_only_where_a_gradient_is_asked_of_it():
    x = jnp.arange(3.0)
    said, verdicts = rows(lambda: drawn(x))["drawn"]
    assert verdicts == ["undecided"]
    assert "asks for no gradient" in said
    assert rows(lambda: jax.grad(lambda x: drawn(x).sum())(x))["drawn"] == ("", ["wrong"])
