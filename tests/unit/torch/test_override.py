"""`override` on PyTorch: other gradients inside a function or a module, and the original left alone."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pullback as pb

X = torch.tensor([[0.4, -1.3, 2.2], [0.1, -0.2, -0.6]])
SCALE = torch.tensor([1.0, -2.0, 3.0])


def guided(dy, x):
    return torch.where((x > 0) & (dy > 0), dy, torch.zeros_like(dy))


def deconvnet(dy):
    return torch.relu(dy)


def hundredfold(dy):
    return 100 * dy


def doubled(dy, output):
    return 2 * dy * output


def net(x):
    return torch.relu(x) * SCALE


def slope(f, x=X):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x, allow_unused=True)[0]


def test_gradient_is_the_closed_form():
    want = torch.where((X > 0) & (SCALE > 0), SCALE, torch.zeros(()))
    torch.testing.assert_close(slope(pb.override(net, {torch.relu: guided})), want)
    torch.testing.assert_close(slope(pb.override(net, {torch.relu: deconvnet})), F.relu(SCALE).expand(2, 3))
    torch.testing.assert_close(slope(net), torch.where(X > 0, SCALE, torch.zeros(())))


@pytest.mark.parametrize(
    "kind", [torch.relu, F.relu, torch.Tensor.relu, "relu"], ids=["torch", "F", "Tensor", "name"]
)
@pytest.mark.parametrize(
    "spelt", [torch.relu, F.relu, torch.Tensor.relu, nn.ReLU()], ids=["torch", "F", "Tensor", "nn"]
)
def test_an_operation_has_many_names(kind, spelt):
    f = pb.override(lambda x: spelt(x), {kind: hundredfold})
    torch.testing.assert_close(slope(f), torch.full_like(X, 100))
    assert f.replaced == {"relu": 1}


def test_operators_are_operations():
    f = pb.override(lambda x: (x @ x.T) + 3, {torch.matmul: lambda dy, a, b: (10 * dy @ b.T, None)})
    torch.testing.assert_close(slope(f), 10 * torch.ones(2, 2) @ X)
    f = pb.override(lambda x: 1 + x * 2, {torch.mul: lambda dy, x: 5 * dy, "add": lambda dy, x: 7 * dy})
    torch.testing.assert_close(slope(f), torch.full_like(X, 35))


def test_places_are_counted():
    f = pb.override(lambda x: F.relu(x.relu() - torch.tanh(x)), {torch.relu: guided, torch.tanh: hundredfold})
    f(X)
    assert f.replaced == {"relu": 2, "tanh": 1}


def test_an_operation_with_several_outputs():
    f = pb.override(lambda x: torch.max(x, 1).values, {torch.max: lambda dv, di, x: torch.ones_like(x) * 4})
    torch.testing.assert_close(slope(f), torch.full_like(X, 4))


def test_higher_derivatives_go_through_the_given_gradient():
    f = pb.override(lambda x: torch.exp(x), {torch.exp: doubled})
    x = X.clone().requires_grad_()
    y = f(x)
    for factor in (2, 4, 8):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        torch.testing.assert_close(y, factor * torch.exp(x))


def test_forward_mode_and_transforms():
    f = pb.override(lambda x: torch.exp(x), {torch.exp: doubled})
    torch.testing.assert_close(torch.func.jvp(f, (X,), (torch.ones_like(X),))[1], 2 * torch.exp(X))
    torch.testing.assert_close(torch.func.grad(lambda x: f(x).sum())(X), 2 * torch.exp(X))
    torch.testing.assert_close(torch.vmap(torch.func.grad(lambda x: f(x).sum()))(X), 2 * torch.exp(X))
    with pytest.raises(pb.errors.ForwardModeError):
        torch.func.jvp(pb.override(net, {torch.relu: deconvnet}), (X,), (X,))


def test_a_rule_inside_is_found_and_stays_what_it_is():
    rule = pb.custom_gradient(lambda x: (torch.relu(x), lambda dy: 3 * dy))
    f = pb.override(lambda x: rule(x) + torch.tanh(x), {torch.tanh: hundredfold})
    torch.testing.assert_close(slope(f), torch.full_like(X, 103))


@pytest.mark.parametrize("kind", ["Linear", nn.Linear])
def test_a_module_has_another_gradient_and_trains_as_before(kind):
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 3, bias=False)), nn.Tanh())
    f = pb.override(model, {kind: lambda dy: 7 * dy})
    x = X.clone().requires_grad_()
    y = f(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 7 * (1 - y.detach() ** 2))
    weight = model[0][0].weight
    found, weight.grad = weight.grad, None
    model(X).sum().backward()
    torch.testing.assert_close(found, weight.grad)
    assert f.replaced == {"Linear": 1}


def test_a_module_of_the_users_by_its_name():
    class Block(nn.Module):
        def forward(self, x, *, scale):
            return torch.tanh(x) * scale

    block = Block()
    f = pb.override(lambda x: block(x, scale=2.0), {"Block": hundredfold})
    torch.testing.assert_close(slope(f), torch.full_like(X, 100))


def test_in_a_context():
    with pb.override({F.relu: hundredfold}) as found:
        inside = slope(net)
        assert nn.Sequential(nn.ReLU())(X).shape == X.shape
    torch.testing.assert_close(inside, (100 * SCALE).expand(2, 3))
    assert found.replaced == {"relu": 2}
    torch.testing.assert_close(slope(net), torch.where(X > 0, SCALE, torch.zeros(())))


def test_a_gradient_may_use_the_operation_it_replaces():
    with pb.override({torch.relu: deconvnet}) as found:
        slope(net)
    assert found.replaced == {"relu": 1}


def test_what_matched_nothing_is_an_error_that_lists_what_is_there():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    for kind in (F.elu, "Conv2d"):
        with pytest.raises(
            pb.errors.OverrideError, match=r"nothing in it(.|\n)*Linear, ReLU, Sequential, linear, relu"
        ):
            pb.override(model, {kind: guided})(X)
    with pytest.raises(pb.errors.OverrideError, match="'elu'"), pb.override({F.elu: guided}):
        net(X)


@pytest.mark.parametrize("kind", [3, torch.Tensor, lambda x: x], ids=["a number", "a class", "a lambda"])
def test_what_is_no_operation_is_refused(kind):
    with pytest.raises(pb.errors.OverrideError, match="is no operation"):
        pb.override(net, {kind: guided, torch.relu: guided})


def test_changes_in_place_are_refused():
    with pytest.raises(pb.errors.OverrideError, match="in place"):
        pb.override(net, {torch.relu_: guided})
    for model in (nn.ReLU(inplace=True), lambda x: (x * 1).relu_()):
        with pytest.raises(pb.errors.OverrideError, match="in place"):
            pb.override(model, {F.relu: guided})(X)


def test_a_gradient_with_a_wrong_count_is_refused():
    f = pb.override(lambda x: x @ x.T, {torch.matmul: lambda dy: dy})
    with pytest.raises(pb.errors.CotangentCountError, match="matmul"):
        slope(f)


def test_a_rule_of_several_outputs_stands_for_an_operation_that_gives_the_same():
    a = torch.diag(torch.tensor([1.0, 1.0, 2.0])).requires_grad_()

    def projector(a):
        return torch.linalg.eigh(a)[1][:, :2] @ torch.linalg.eigh(a)[1][:, :2].T

    clear = pb.override(projector, {torch.linalg.eigh: pb.ops.eigh})
    (slope,) = torch.autograd.grad(clear(a)[0, 2], a)
    torch.testing.assert_close(slope, torch.tensor([[0, 0, -0.5], [0, 0, 0], [-0.5, 0, 0]]))
    x = torch.tensor([2.0, 1.0, 2.0], requires_grad=True)
    even = pb.override(lambda x: torch.sort(x)[0] * torch.arange(3.0), {torch.sort: pb.ops.sort})
    assert torch.autograd.grad(even(x).sum(), x)[0].tolist() == [1.5, 0.0, 1.5]
    other = pb.override(lambda x: torch.median(x, 0)[0], {torch.median: pb.ops.normalize})
    with pytest.raises(pb.errors.OverrideError, match="the rule normalize for median, which gives shapes"):
        torch.autograd.grad(other(x), x)
