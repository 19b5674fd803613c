"""What is changed in place after the call is an error where it is needed, and never a wrong number."""

from typing import NamedTuple

import pytest
import torch

import pullback as pb


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@pb.custom_gradient
def square(x):
    def grad(dy):
        return 2 * x * dy

    return x * x, grad


@pb.custom_gradient
def exp(x):
    y = torch.exp(x)

    def grad(dy):
        return dy * y

    return y, grad


@pb.custom_gradient
def through_a_view(x):
    both = torch.stack([torch.exp(x), torch.sin(x)])

    def grad(dy):
        return dy * both[0]

    return both[0], grad


class Keeper:
    """A pullback that is an object, which nobody can look into."""

    def __init__(self, y):
        self.y = y

    def pull(self, dy):
        return dy * self.y


@pb.custom_gradient
def kept_by_an_object(x):
    y = torch.exp(x)
    return y, Keeper(y).pull


CHANGED = pytest.raises(RuntimeError, match="modified by an inplace operation")


def test_a_changed_input_is_an_error():
    x = leaf(1.0, 2.0) * 1
    y = square(x)
    x.add_(1)
    with CHANGED:
        y.sum().backward()


@pytest.mark.parametrize("f", [exp, through_a_view, kept_by_an_object])
def test_a_changed_output_that_is_kept_is_an_error(f):
    x = leaf(1.0, 2.0)
    y = f(x)
    with pytest.raises(RuntimeError, match="inplace"):
        y.add_(1).sum().backward()


@pytest.mark.parametrize("f", [exp, through_a_view, kept_by_an_object])
def test_an_unchanged_output_is_used(f):
    x = leaf(1.0, 2.0)
    f(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.exp(x).detach())


class Kept(NamedTuple):
    value: torch.Tensor
    name: str


@pytest.mark.parametrize("kind", ["cell", "default", "keyword", "named tuple"])
def test_a_residual_that_somebody_changes_is_an_error_wherever_grad_keeps_it(kind):
    shown = []

    @pb.custom_gradient
    def exp(x):
        e = torch.exp(x)
        kept = Kept(e, "exp")
        grads = {
            "cell": lambda dy: dy * e,
            "default": lambda dy, e=e: dy * e,
            "keyword": lambda dy, *, e=e: dy * e,
            "named tuple": lambda dy: dy * kept.value,
        }
        shown.append(e)
        return e * 1, grads[kind]

    for _ in range(3):  # the shorter way, too
        y = exp(leaf(1.0, 2.0))
        shown.pop().add_(1)
        with CHANGED:
            y.sum().backward()


def test_a_changed_output_that_nobody_keeps_is_fine():
    x = leaf(1.0, 2.0)
    y = square(x)
    y.mul_(3)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


def test_an_input_returned_as_it_is_cannot_be_changed_in_place():
    x = leaf(1.0, 2.0) * 1
    y = pb.scale_gradient(x, 0.5)
    with pytest.raises(RuntimeError, match="inplace"):
        y.add_(1)


def test_a_view_of_the_input_can_be_returned():
    @pb.custom_gradient
    def second_column(x):
        def grad(dy):
            return torch.stack([torch.zeros_like(dy), 3 * dy], 1)

        return x[:, 1], grad

    x = torch.ones(2, 2, requires_grad=True)
    y = second_column(x)
    y.sum().backward()
    assert x.grad.tolist() == [[0, 3], [0, 3]]
    y = second_column(x * 1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.add_(1).sum().backward()


def test_a_change_between_the_first_and_the_second_derivative_is_an_error():
    cube = pb.custom_gradient(lambda x: (x**3, lambda dy: 3 * x**2 * dy))
    x = leaf(1.0, 2.0)
    z = x * 1
    y = cube(z)
    (g,) = torch.autograd.grad(y.sum(), z, create_graph=True)
    z.add_(1)
    with CHANGED:
        torch.autograd.grad(g.sum(), x)


def test_one_output_returned_twice():
    @pb.custom_gradient
    def twice(x):
        y = x * 1

        def grad(da, db):
            return da + 10 * db

        return y, y, grad

    x = leaf(1.0, 2.0)
    a, b = twice(x)
    (a + 2 * b).sum().backward()
    assert x.grad.tolist() == [21, 21]
    assert a.data_ptr() != b.data_ptr()


def test_a_constant_that_is_returned_stays_a_constant():
    table = torch.tensor([5.0, 6.0])

    @pb.custom_gradient
    def look_up(x):
        return table, lambda dy: 4 * dy

    x = leaf(1.0, 2.0)
    for _ in range(2):
        x.grad = None
        look_up(x).sum().backward()
        assert x.grad.tolist() == [4, 4]
    assert not table.requires_grad
