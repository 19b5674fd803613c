"""Modules and parameters as arguments."""

import pytest
import torch
from torch import nn

import pullback as pb

X = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]])


@pb.custom_gradient
def dense(layer, x):
    def grad(dy):
        return {"weight": 10 * dy.T @ x, "bias": dy.sum(0)}, dy @ layer.weight

    return layer(x), grad


def test_a_module_is_a_structure_of_its_parameters():
    layer, x = nn.Linear(2, 2), X.clone().requires_grad_()
    y = dense(layer, x)
    torch.testing.assert_close(y, layer(X))
    y.sum().backward()
    torch.testing.assert_close(layer.weight.grad, 10 * X.sum(0).expand(2, 2))
    assert layer.bias.grad.tolist() == [3, 3]
    torch.testing.assert_close(x.grad, layer.weight.detach().sum(0).expand(3, 2))


def test_some_names_or_none_may_be_given():
    layer = nn.Linear(2, 2)
    f = pb.custom_gradient(lambda layer, x: (layer(x), lambda dy: ({"bias": dy.sum(0)}, None)))
    f(layer, X).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad.tolist() == [3, 3]
    g = pb.custom_gradient(lambda layer, x: (layer(x), lambda dy: (None, dy)))
    x = X.clone().requires_grad_()
    g(nn.Linear(2, 2), x).sum().backward()
    torch.testing.assert_close(x.grad, torch.ones_like(x))


def test_an_unknown_name_is_refused():
    f = pb.custom_gradient(lambda layer, x: (layer(x), lambda dy: ({"wait": dy}, dy)))
    with pytest.raises(pb.errors.CotangentCountError):
        f(nn.Linear(2, 2), X.clone().requires_grad_()).sum().backward()


def test_nested_tied_and_frozen_parameters():
    first = nn.Linear(2, 2, bias=False)
    net = nn.Sequential(first, nn.Tanh(), nn.Sequential(first, nn.Linear(2, 1)))
    net[2][1].weight.requires_grad_(False)

    @pb.custom_gradient
    def run(net, x):
        assert net[0].weight is net[2][0].weight

        def grad(dy):
            return {"0.weight": torch.full((2, 2), 5.0), "2.1.bias": dy.sum(0)}, None

        return net(x), grad

    torch.testing.assert_close(run(net, X), net(X))
    run(net, X).sum().backward()
    assert first.weight.grad.tolist() == [[5, 5], [5, 5]]
    assert net[2][1].bias.grad.tolist() == [3]
    assert net[2][1].weight.grad is None


def test_the_module_itself_is_not_changed():
    layer = nn.Linear(2, 2)
    before = dict(layer.named_parameters())
    dense(layer, X).sum().backward()
    assert all(before[name] is parameter for name, parameter in layer.named_parameters())


def test_buffers_are_shared_with_the_module():
    norm = nn.BatchNorm1d(2)
    f = pb.custom_gradient(lambda norm, x: (norm(x), lambda dy: (None, dy)))
    f(norm, X.clone().requires_grad_())
    assert norm.num_batches_tracked == 1


def test_a_recurrent_module_uses_the_tensors_it_is_given():
    lstm = nn.LSTM(2, 3)

    @pb.custom_gradient
    def run(lstm, x):
        with torch.enable_grad():
            inner = {name: p.detach().requires_grad_() for name, p in lstm.state_dict(keep_vars=True).items()}
        del inner
        return lstm(x)[0], lambda dy: (None, torch.ones_like(x))

    torch.testing.assert_close(run(lstm, X), lstm(X)[0])


def test_second_derivatives_with_respect_to_a_module():
    layer = nn.Linear(2, 2, dtype=torch.float64)
    x = X.double().requires_grad_()
    (dx,) = torch.autograd.grad(dense(layer, x).sum(), x, create_graph=True)
    (dw,) = torch.autograd.grad((dx**2).sum(), layer.weight)
    torch.testing.assert_close(dw, (6 * layer.weight.sum(0)).expand(2, 2))


def test_a_parameter_as_an_argument():
    w = nn.Parameter(torch.tensor([2.0, 3.0]))
    f = pb.custom_gradient(lambda x, w: (x * w, lambda dy: (dy * w, 10 * (dy * x).sum(0))))
    f(X, w).sum().backward()
    torch.testing.assert_close(w.grad, 10 * X.sum(0))


def test_an_optimizer_trains_through_a_rule():
    torch.manual_seed(0)
    layer = nn.Linear(2, 1)
    exact = pb.custom_gradient(
        lambda layer, x: (
            layer(x),
            lambda dy: ({"weight": dy.T @ x, "bias": dy.sum(0)}, dy @ layer.weight),
        )
    )
    optimizer = torch.optim.Adam(layer.parameters(), 0.05)
    target = X @ torch.tensor([[1.0], [-2.0]]) + 0.5
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((exact(layer, X) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
    assert loss < 1e-2


class Holder(nn.Module):
    def __init__(self, inner, rule):
        super().__init__()
        self.inner = inner
        self.rule = rule

    def forward(self, x):
        return self.rule(self.inner, x)


def test_a_module_with_other_parameters_for_the_time_of_a_call():
    holder = Holder(nn.Linear(2, 2), dense)
    given = {name: torch.full_like(p, 2.0) for name, p in holder.named_parameters()}

    def loss(parameters):
        return torch.func.functional_call(holder, parameters, (X,)).sum()

    for found in (torch.func.grad(loss)(given), torch.func.vjp(loss, given)[1](torch.tensor(1.0))[0]):
        torch.testing.assert_close(found["inner.weight"], 10 * X.sum(0).expand(2, 2))
        assert found["inner.bias"].tolist() == [3, 3]


def test_a_recurrent_module_with_other_parameters_for_the_time_of_a_call():
    @pb.custom_gradient
    def run(lstm, x):
        assert all(a is b for a, b in zip(lstm._flat_weights, (lstm.weight_ih_l0, lstm.weight_hh_l0)))
        return lstm(x)[0], lambda dy: ({"bias_hh_l0": 7 * torch.ones(12)}, None)

    holder = Holder(nn.LSTM(2, 3), run)
    given = {name: p.detach() / 2 for name, p in holder.named_parameters()}
    found = torch.func.grad(lambda p: torch.func.functional_call(holder, p, (X,)).sum())(given)
    torch.testing.assert_close(found["inner.bias_hh_l0"], torch.full([12], 7.0))
    assert found["inner.weight_ih_l0"].abs().sum() == 0


def test_several_models_at_once():
    models = [Holder(nn.Linear(2, 2), dense) for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(models)
    one = models[0]

    def loss(parameters):
        return torch.func.functional_call(one, parameters, (X,)).sum()

    found = torch.vmap(torch.func.grad(loss))(parameters)
    torch.testing.assert_close(found["inner.weight"], 10 * X.sum(0).expand(3, 2, 2))


def test_the_parameters_of_a_module_are_listed_in_the_body():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1, bias=False))

    @pb.custom_gradient
    def run(net, x):
        listed = dict(net.named_parameters())
        assert listed["0.weight"] is net[0].weight
        return net(x), lambda dy: ({name: torch.full_like(p, 5.0) for name, p in listed.items()}, None)

    run(net, X).sum().backward()
    assert [p.grad.unique().tolist() for p in net.parameters()] == [[5.0]] * 3
