"""A pullback of `torch.func.vjp` that is called later answers for the state of its run, or refuses."""

import pytest
import torch
import torch.utils.checkpoint

import pullback as pb
from pullback.errors import DerivativeError

X = torch.tensor([1.0, 2.0])


class Holder:
    def __init__(self):
        self.c = torch.tensor([3.0, 4.0])
        self.number = 3.0


def kept_tensor(holder):
    @pb.custom_gradient
    def f(x):
        c = holder.c

        def grad(dy):
            return dy * c

        return x * c, grad

    return f


def computed(holder):
    @pb.custom_gradient
    def f(x):
        c = holder.c * 2

        def grad(dy):
            return dy * c

        return x * c, grad

    return f


def number(holder):
    @pb.custom_gradient
    def f(x):
        n = holder.number

        def grad(dy):
            return dy * n

        return x * n, grad

    return f


def change(holder):
    holder.c.mul_(2)
    holder.number *= 2


def bind(holder):
    holder.c = holder.c * 5
    holder.number = 7.0


@pytest.mark.parametrize("make", [kept_tensor, computed, number])
@pytest.mark.parametrize("changed", [change, bind])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_change_between_the_run_and_the_pullback_is_refused(make, changed, calls):
    holder = Holder()
    f = make(holder)
    for _ in range(calls):
        _, pull = torch.func.vjp(f, X)
    (before,) = pull(torch.ones(2))
    expected = torch.func.vjp(f, X)[1](torch.ones(2))[0].clone()
    before = before.clone()
    changed(holder)
    with pytest.raises(DerivativeError, match="was run again for its gradient, and kept other values"):
        pull(torch.ones(2))
    assert torch.equal(before, expected)


@pytest.mark.parametrize("make", [kept_tensor, computed, number])
def test_without_a_change_a_pullback_may_be_called_again(make):
    f = make(Holder())
    _, pull = torch.func.vjp(f, X)
    first, second = pull(torch.ones(2)), pull(2 * torch.ones(2))
    assert torch.equal(2 * first[0], second[0])
    assert torch.equal(torch.func.jacrev(f)(X), torch.diag(first[0]))
    per_sample = torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(torch.stack([X, X]))
    assert torch.equal(per_sample, torch.stack([first[0], first[0]]))
    twice = torch.func.grad(lambda x: torch.func.grad(lambda x: (f(x) ** 2).sum())(x).sum())(X)
    assert torch.allclose(twice, 2 * first[0] ** 2)


def test_an_attribute_that_a_second_run_sets_is_set_again_as_by_a_checkpoint():
    class Counter:
        ours = native = 0

    counter = Counter()

    @pb.custom_gradient
    def f(x):
        counter.ours += 1
        return 2 * x, lambda dy: 2 * dy

    def plain(x):
        counter.native += 1
        return torch.sin(x)

    x = X.clone().requires_grad_()
    torch.autograd.grad(torch.utils.checkpoint.checkpoint(plain, x, use_reentrant=False).sum(), x)
    torch.autograd.grad(f(x).sum(), x, create_graph=True)
    assert counter.ours == counter.native == 2
