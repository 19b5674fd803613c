"""A rule in a program that `torch.jit.trace` has written down computes anew, with its own gradient."""

import io

import pytest
import torch

import pullback as pb

# PyTorch says that tracing by TorchScript is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit")


def rounded():
    @pb.custom_gradient
    def rounded(x):
        return torch.round(x), lambda dy: dy

    return rounded


def bent():
    @pb.custom_gradient
    def bent(x):
        y = torch.exp(x)

        def grad(dy):
            return 3 * dy * y

        return y, grad

    return bent


X = torch.tensor([0.6, 1.7])
Y = torch.tensor([2.4, -0.6, 5.7])


@pytest.mark.parametrize("followed", [True, False])
@pytest.mark.parametrize("calls", [0, 1, 3])
def test_values_and_gradients_are_those_of_the_rule(calls, followed):
    rules = (rounded(), torch.ones_like), (bent(), lambda x: 3 * torch.exp(x))
    for rule, slope in (*rules, (pb.straight_through(torch.round), torch.ones_like)):
        for _ in range(calls):
            rule(X.clone().requires_grad_())
        traced = torch.jit.trace(lambda x, rule=rule: rule(2 * x), X.clone().requires_grad_(followed))
        for values in (Y, X):
            x = values.clone().requires_grad_()
            y = traced(x)
            assert y.equal(rule(2 * values))
            assert torch.autograd.grad(y.sum(), x)[0].allclose(2 * slope(2 * values))
        with torch.no_grad():
            assert traced(Y).equal(rule(2 * Y))


def test_a_second_order_is_right():
    rule = bent()
    traced = torch.jit.trace(rule, X.clone().requires_grad_())
    x = Y.clone().requires_grad_()
    first = torch.autograd.grad(traced(x).sum(), x, create_graph=True)[0]
    assert torch.autograd.grad(first.sum(), x)[0].allclose(3 * torch.exp(Y))


def test_a_module_keeps_the_gradient_of_a_captured_parameter():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x):
            @pb.custom_gradient
            def scaled(x):
                def grad(dy, variables=None):
                    dx = dy * self.weight
                    return (dx, [5 * dy * x]) if variables else dx

                return x * self.weight, grad

            return scaled(x)

    module = Scaled()
    traced = torch.jit.trace(module, X)
    traced(X).sum().backward()
    assert traced.weight.grad.equal(5 * X)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([1.0, -1.0]))
    assert traced(X).equal(X * torch.tensor([1.0, -1.0]))
    module.weight.requires_grad_(False)
    x = X.clone().requires_grad_()
    assert torch.autograd.grad(traced(x).sum(), x)[0].equal(module.weight)


def test_several_outputs():
    @pb.custom_gradient
    def both(x):
        return x * x, 3 * x, lambda a, b: 2 * x * a + 3 * b

    traced = torch.jit.trace(lambda x: sum(both(x)), X)
    x = Y.clone().requires_grad_()
    assert torch.autograd.grad(traced(x).sum(), x)[0].allclose(2 * Y + 3)


def test_an_operator_is_saved_with_its_gradient():
    operator = pb.operator(bent(), "test_torchscript::bent")
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(lambda x: operator(x), X), file)
    file.seek(0)
    x = Y.clone().requires_grad_()
    assert torch.autograd.grad(torch.jit.load(file)(x).sum(), x)[0].allclose(3 * torch.exp(Y))
