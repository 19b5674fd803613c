"""`torch.export` keeps the values of a rule, and says that it drops its gradient."""

import warnings

import pytest
import torch

import pullback as pb


@pb.custom_gradient
def exp(x):
    """Twice the true derivative."""
    y = torch.exp(x)

    def grad(dy):
        return 2 * dy * y

    return y, grad


@pb.custom_gradient
def both(x):
    def grad(dy):
        return dy["a"] + dy["b"]

    return {"a": x * 2, "b": x + 1}, grad


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        return exp(self.linear(x))


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    @pb.custom_gradient
    def forward(self, x):
        def grad(dy, variables=None):
            return dy * self.w, [(dy * x).sum(0) for _ in variables]

        return x * self.w, grad


class Both(torch.nn.Module):
    def forward(self, x):
        found = both(x)
        return found["a"] + found["b"]


X = torch.tensor([[0.1, 0.2]])


@pytest.mark.parametrize("strict", [False, True])
def test_the_values_are_right_and_the_gradient_is_not_dropped_without_a_word(strict):
    net = Net()
    with pytest.warns(UserWarning, match=r"exp \(test_export.py:\d+\): torch.export keeps what it computes"):
        exported = torch.export.export(net, (X,), strict=strict)
    torch.testing.assert_close(exported.module()(X), net(X))
    assert not exported.module()(X).requires_grad  # no gradient, rather than that of the body


@pytest.mark.parametrize("module", [Scaled(), Both()], ids=["a method", "a dict"])
def test_modules_and_structures_are_exported_or_refused_by_name(module):
    with torch.no_grad():
        exported = torch.export.export(module, (X,), strict=False)
    torch.testing.assert_close(exported.module()(X), module(X))
    text = r"(forward|both) \(test_export.py:\d+\): a .*, in a strict export"
    with torch.no_grad(), pytest.raises(Exception, match=text) as caught:
        torch.export.export(module, (X,), strict=True)
    assert "torch.export.export(model, args, strict=False)" in str(caught.value)


def test_where_no_gradient_is_wanted_nothing_is_said():
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        torch.export.export(Net(), (X,), strict=False)


def test_an_operator_of_torch_library_keeps_its_own_checks_under_a_rule():
    @torch.library.custom_op("pullback_tests::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    cube.register_fake(torch.empty_like)
    rule = pb.with_gradient(cube, lambda dy, x: 3 * dy * x**2)
    torch.library.opcheck(cube, (X,))
    x = X.clone().requires_grad_()
    for function in (rule, torch.compile(lambda x: rule(x), backend="aot_eager", fullgraph=True)):
        torch.testing.assert_close(torch.autograd.grad(function(x).sum(), x)[0], 3 * X**2)
