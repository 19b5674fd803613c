"""Derivatives of every order are right, whatever the body keeps; PyTorch's own checks are the judges."""

import pytest
import torch
from torch.autograd import grad, gradcheck, gradgradcheck

import pullback as pb


@pb.custom_gradient
def exp(x):
    y = torch.exp(x)

    def grad(dy):
        return dy * y

    return y, grad


@pb.custom_gradient
def sine_and_cosine(x):
    s, c = torch.sin(x), torch.cos(x)

    def grad(ds, dc):
        return ds * c - dc * s

    return s, c, grad


@pb.custom_gradient
def log1pexp(x):
    e = torch.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return torch.log(1 + e), grad


@pb.custom_gradient
def product(a, b):
    def grad(dy):
        return pb.unbroadcast(dy * b, like=a), pb.unbroadcast(dy * a, like=b)

    return a * b, grad


@pb.custom_gradient
def matmul(a, b):
    def grad(dy):
        return dy @ b.T, a.T @ dy

    return a @ b, grad


@pb.custom_gradient
def modulus(z):
    def grad(dy):
        return dy * z / torch.abs(z)

    return torch.abs(z), grad


def numbers(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(len(shape) + 3)
    return torch.randn(*shape, dtype=dtype, generator=generator, requires_grad=True)


RULES = {
    "a kept output": (exp, [numbers(4)]),
    "two outputs": (sine_and_cosine, [numbers(4)]),
    "a kept intermediate": (log1pexp, [numbers(2, 3)]),
    "broadcasting": (product, [numbers(4, 3), numbers(3)]),
    "matrices": (matmul, [numbers(2, 3), numbers(3, 4)]),
    "complex numbers": (modulus, [numbers(3, dtype=torch.complex128)]),
    "elementwise": (pb.elementwise(torch.sin, torch.cos), [numbers(3)]),
    "a transposed view": (lambda x: exp(x.T), [numbers(2, 3)]),
    "a strided view": (lambda x: exp(x[::2]), [numbers(5)]),
    "an expanded view": (lambda x: exp(x.expand(2, 3)), [numbers(3)]),
}


@pytest.mark.parametrize("name", RULES)
def test_pytorch_finds_the_derivatives_right(name):
    f, inputs = RULES[name]
    assert gradcheck(f, inputs, check_forward_ad=True, check_batched_grad=True, check_undefined_grad=True)
    assert gradgradcheck(f, inputs, check_batched_grad=True)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_kept_output_counts_at_every_order(order):
    x = numbers(3)
    y = exp(x)
    for _ in range(order):
        (y,) = grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(y, torch.exp(x))


@pytest.mark.parametrize("order", [2, 3])
def test_an_explicit_second_order_is_used_and_differentiated(order):
    @pb.custom_gradient
    def cube(x):
        def grad(dy):
            return dy * 3 * x**2, lambda ddx: ddx * dy * 600 * x

        return x**3, grad

    x = numbers(3)
    y = cube(x)
    for _ in range(order):
        (y,) = grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(y, 600 * x if order == 2 else torch.full_like(x, 600))


@pb.custom_gradient(order=1)
def first_only(x):
    def grad(dy):
        return dy * 2 * x

    return x * x, grad


def test_a_first_derivative_of_order_one_may_be_recorded():
    x = numbers(3)
    (g,) = grad(first_only(x).sum(), x, create_graph=True)
    torch.testing.assert_close(g, 2 * x)


def test_a_second_derivative_is_refused_by_order_one():
    x = numbers(3)
    (g,) = grad(first_only(x).sum(), x, create_graph=True)
    with pytest.raises(pb.errors.SecondOrderError, match="order=1"):
        grad(g.sum(), x)


def test_a_second_derivative_is_refused_by_order_one_under_transforms():
    x = numbers(3).detach()
    f = torch.func.grad(lambda x: first_only(x).sum())
    torch.testing.assert_close(f(x), 2 * x)
    with pytest.raises(pb.errors.SecondOrderError, match="order=1"):
        torch.func.jacrev(f)(x)
    with pytest.raises(pb.errors.SecondOrderError, match="order=1"):
        torch.func.jacfwd(f)(x)


def test_first_order_runs_the_body_once():
    runs = []

    @pb.custom_gradient
    def f(x):
        runs.append(1)

        def grad(dy):
            return dy * 3

        return x * 3, grad

    x = numbers(3)
    f(x).sum().backward()
    assert len(runs) == 1


def test_mixed_second_derivatives():
    a, b = numbers(3), numbers(3)
    (da,) = grad((product(a, b) ** 2).sum(), a, create_graph=True)
    (dadb,) = grad(da.sum(), b)
    torch.testing.assert_close(dadb, 4 * a * b)


def test_a_second_derivative_through_an_unused_output():
    x = numbers(3)
    s, _ = sine_and_cosine(x)
    (g,) = grad(s.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    torch.testing.assert_close(h, -torch.sin(x))


def test_a_rule_inside_a_rule():
    @pb.custom_gradient
    def outer(x):
        y = exp(x)

        def grad(dy):
            return dy * 5 * y

        return y, grad

    x = numbers(3)
    (g,) = grad(outer(x).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    torch.testing.assert_close(g, 5 * torch.exp(x))
    torch.testing.assert_close(h, 5 * torch.exp(x))
