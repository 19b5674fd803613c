"""A rule keeps what `grad` needs, and nothing else: on its first call as on any other, step after step."""

import gc
import weakref

import pytest
import torch
from leaks import gain

import pullback as pb

OPERATIONS = 16


class Alive:
    """Count the intermediates of a body that are alive at once."""

    def __init__(self):
        self.now = self.most = 0

    def __call__(self, tensor):
        self.now += 1
        self.most = max(self.most, self.now)
        weakref.finalize(tensor, self._gone)
        return tensor

    def _gone(self):
        self.now -= 1


def chain(alive):
    """A body of 16 operations that keeps its input only; new code, so that nobody has heard it before."""
    space = {"torch": torch, "alive": alive}
    exec(
        "def chain(x):\n"
        "    y = x\n"
        f"    for _ in range({OPERATIONS}):\n"
        "        y = alive(torch.sin(y))\n"
        "    def grad(dy):\n"
        "        return dy * torch.cos(x)\n"
        "    return y, grad\n",
        space,
    )
    return pb.custom_gradient(space["chain"])


class Scaled(torch.nn.Module):
    def __init__(self, alive):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(2.0))
        self.alive = alive

    @pb.custom_gradient
    def forward(self, x):
        y = x
        for _ in range(OPERATIONS):
            y = self.alive(torch.sin(y * self.gain))

        def grad(dy, variables=None):
            return dy * torch.cos(x), [dy.sum() for _ in variables]

        return y, grad


MAKERS = {"no parameter": chain, "a parameter": Scaled}


@pytest.mark.parametrize("kind", MAKERS)
def test_no_call_keeps_the_intermediates_of_a_body(kind):
    alive = Alive()
    rule = MAKERS[kind](alive)
    x = torch.ones(4, requires_grad=True)
    for _ in range(3):
        alive.now = alive.most = 0
        y = rule(x)
        assert alive.most <= 2  # one is made from the other
        y.sum().backward()


def test_no_call_of_a_transform_keeps_the_intermediates_of_a_body():
    alive = Alive()
    rule = chain(alive)
    for _ in range(2):
        alive.now = alive.most = 0
        torch.vmap(rule)(torch.ones(3, 4))
        assert alive.most <= 2


@pb.custom_gradient
def kept_output(x):
    y = torch.tanh(x)

    def grad(dy):
        return dy * (1 - y * y)

    return y, grad


@pb.custom_gradient
def two_outputs(x, y):
    both = x * y

    def grad(ds, dd):
        return (ds + dd) * y, (ds - dd) * both

    return both, x - y, grad


def tensors():
    gc.collect()
    return sum(1 for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor))


SCALED = Scaled(lambda y: y)
SINE = pb.elementwise(torch.sin, torch.cos)
STEPS = {
    "one output": lambda x: kept_output(x).sum().backward(),
    "two outputs": lambda x: sum(two_outputs(x, x * 2)).sum().backward(),
    "a parameter": lambda x: SCALED(x).sum().backward(),
    "a recorded gradient": lambda x: (
        torch.autograd.grad(kept_output(x).sum(), x, create_graph=True)[0].sum().backward()
    ),
    "elementwise": lambda x: SINE(x).sum().backward(),
    "a clipped gradient": lambda x: pb.clip_gradient(x, norm=1.0).sum().backward(),
}


@pytest.mark.parametrize("kind", STEPS)
def test_steps_leave_nothing_behind(kind):
    step = STEPS[kind]
    x = torch.ones(2**20 if kind == "one output" else 2**18, requires_grad=True)  # 4 MB, or 1 MB

    def steps(count=200):
        for _ in range(count):
            x.grad = None
            step(x)
        x.grad = None

    steps(20)
    counted = tensors()
    assert gain(steps, 64e6) < 64e6  # an array kept in every step would be 200 MB, or more
    assert tensors() <= counted
