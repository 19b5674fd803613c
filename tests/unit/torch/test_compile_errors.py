"""An error of the user's in `grad` is itself under `torch.compile`, and a good `grad` is still compiled."""

import pytest
import torch

import pullback as pb


class MineError(ValueError):
    pass


@pb.custom_gradient
def failing(x):
    def grad(dy):
        raise MineError("mine")

    return 2 * x, grad


@pb.custom_gradient
def reading(x):
    def grad(dy):
        return dy * (2.0 if float(dy.sum()) > 0 else 5.0)

    return 2 * x, grad


@pb.custom_gradient
def good(x):
    def grad(dy):
        return 3 * dy

    return 2 * x, grad


# Dynamo looks at `.grad` of what crosses a break of the graph.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor", "ignore:Error detected in")


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()


def test_an_error_in_grad_is_raised_as_itself():
    x = torch.ones(2, requires_grad=True)
    y = torch.compile(lambda x: failing(x).sum(), backend="aot_eager")(x)
    with pytest.raises(MineError, match=r"^mine$"):
        y.backward()


def test_a_grad_that_reads_numbers_runs_uncompiled():
    x = torch.ones(2, requires_grad=True)
    compiled = torch.compile(lambda x: reading(x).sum(), backend="aot_eager")
    assert torch.autograd.grad(compiled(x), x)[0].tolist() == [2.0, 2.0]
    assert torch.autograd.grad(-compiled(x), x)[0].tolist() == [-5.0, -5.0]


def test_a_good_grad_is_one_graph():
    x = torch.ones(2, requires_grad=True)
    compiled = torch.compile(lambda x: good(x).sum(), backend="aot_eager", fullgraph=True)
    assert torch.autograd.grad(compiled(x), x)[0].tolist() == [3.0, 3.0]
    with torch.no_grad():
        assert compiled(x) == 4
