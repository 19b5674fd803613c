"""A gradient that is recorded has the value of one that is not: both come from what the call kept."""

import pytest
import torch
from torch.autograd import grad

import pullback as pb

CHANGED = pytest.raises(
    pb.errors.SecondOrderError, match=r"scaled \((.|\n)*was changed(.|\n)*pass what changes as an argument"
)


def leaf():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def scaling(c):
    """Keep something computed from a tensor that the program may change."""

    @pb.custom_gradient
    def scaled(x):
        slope = c * torch.cos(x)

        def grad(dy):
            return dy * slope

        return c * torch.sin(x), grad

    return scaled


def test_a_recorded_gradient_is_refused_when_what_the_body_reads_has_changed():
    c, x = torch.tensor(3.0), leaf()
    y = scaling(c)(x)
    c.mul_(2)
    (plain,) = grad(y.sum(), x, retain_graph=True)
    torch.testing.assert_close(plain, 3 * torch.cos(x).detach())
    with CHANGED:
        grad(y.sum(), x, create_graph=True)


def test_a_number_that_has_changed_is_seen_too():
    class Setting:
        tau = 3.0

    @pb.custom_gradient
    def scaled(x):
        tau = Setting.tau

        def grad(dy):
            return dy * tau * torch.cos(x)

        return tau * torch.sin(x), grad

    x = leaf()
    y = scaled(x)
    Setting.tau = 6.0
    with CHANGED:
        grad(y.sum(), x, create_graph=True)


def test_a_branch_that_has_changed_is_seen_too():
    training = [True]

    @pb.custom_gradient
    def scaled(x):
        if training:
            return 2 * x, lambda dy: 2 * dy
        return 3 * x, lambda dy: 3 * dy

    x = leaf()
    y = scaled(x)
    training.clear()
    with CHANGED:
        grad(y.sum(), x, create_graph=True)


class Keeper:
    def __init__(self, slope):
        self.slope = slope

    def pull(self, dy):
        return dy * self.slope


def test_what_an_object_keeps_is_compared_by_what_it_gives():
    c, x = torch.tensor(3.0), leaf()

    @pb.custom_gradient
    def scaled(x):
        return c * torch.sin(x), Keeper(c * torch.cos(x)).pull

    y = scaled(x)
    (g,) = grad(y.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    torch.testing.assert_close(h, -3 * torch.sin(x))
    y = scaled(x)
    c.mul_(2)
    with CHANGED:
        grad(y.sum(), x, create_graph=True)


def test_a_recorded_gradient_is_the_kept_one_to_the_last_bit():
    noise = iter([0.0, 1e-6])  # as of sums in another order

    @pb.custom_gradient
    def f(x):
        slope = torch.cos(x) + next(noise)

        def grad(dy):
            return dy * slope

        return torch.sin(x), grad

    x = leaf()
    y = f(x)
    (plain,) = grad(y.sum(), x, retain_graph=True)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert torch.equal(g, plain)
    (h,) = grad(g.sum(), x)
    torch.testing.assert_close(h, -torch.sin(x))


def test_values_that_are_not_finite_are_no_change():
    @pb.custom_gradient
    def f(x):
        slope = 1 / x

        def grad(dy):
            return dy * slope

        return torch.log(x), grad

    x = torch.tensor([0.0, float("nan"), 2.0], requires_grad=True)
    (g,) = grad(f(x).sum(), x, create_graph=True)
    torch.testing.assert_close(g, 1 / x, equal_nan=True)


class Counting(torch.nn.Module):
    """State that the body itself updates, in the ways that modules do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(2))
        self.norm = torch.nn.BatchNorm1d(2, affine=False)

    @pb.custom_gradient
    def forward(self, x):
        self.steps.add_(1)
        self.mean.data.mul_(0.5).add_(0.5 * x.detach().mean(0))
        cube = x**3
        table = torch.empty_like(x)
        table.copy_(3 * x**2)
        normed = self.norm(x)

        def grad(dy):
            return dy * table

        return cube + 0 * normed, grad


@pytest.mark.parametrize("recorded", [False, True])
def test_state_that_a_body_updates_is_updated_once(recorded):
    module = Counting()
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    y = module(x)
    want = {name: value.clone() for name, value in module.state_dict().items()}
    versions = [buffer._version for buffer in module.buffers()]
    (g,) = grad(y.sum(), x, create_graph=recorded)
    torch.testing.assert_close(g, 3 * x**2)
    if recorded:
        (h,) = grad(g.sum(), x)
        torch.testing.assert_close(h, 6 * x)
    assert module.steps == 1
    for name, value in module.state_dict().items():
        torch.testing.assert_close(value, want[name], msg=name)
    assert [buffer._version for buffer in module.buffers()] == versions


def test_a_saved_buffer_is_still_good_after_a_recorded_gradient():
    steps, x = torch.zeros(()), leaf()

    @pb.custom_gradient
    def f(x):
        steps.add_(1)

        def grad(dy):
            return 2 * x * dy

        return x * x, grad

    y = f(x)
    other = (x * steps).sum()  # PyTorch keeps the buffer for this one
    grad(y.sum(), x, create_graph=True)
    (g,) = grad(other, x)
    assert g.tolist() == [1, 1]


def test_a_batch_updates_state_once():
    steps, x = torch.zeros(()), torch.ones(3, 2, requires_grad=True)

    @pb.custom_gradient
    def f(x):
        steps.add_(1)

        def grad(dy):
            return 2 * x * dy

        return x * x, grad

    y = torch.vmap(f)(x)
    assert steps == 1
    y.sum().backward()  # a batch runs the body again
    assert steps == 1
    torch.testing.assert_close(x.grad, 2 * x.detach())
