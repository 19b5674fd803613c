"""Forward mode is the transpose of the pullback, or the user's pushforward, or refused."""

import pytest
import torch
from torch.autograd import forward_ad

import pullback as pb

X = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)


def push(f, x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, t))).tangent


@pb.custom_gradient
def cumulative(x):
    def grad(dy):
        return torch.flip(torch.cumsum(torch.flip(dy, [0]), 0), [0])

    return torch.cumsum(x, 0), grad


def test_the_tangent_is_the_transpose_of_the_pullback():
    torch.testing.assert_close(push(cumulative, X, X**2), torch.cumsum(X**2, 0))


def test_the_tangent_is_that_of_the_rule_and_not_of_the_body():
    f = pb.custom_gradient(lambda x: (torch.exp(x), lambda dy: 7 * dy))
    torch.testing.assert_close(push(f, X, torch.ones_like(X)), torch.full_like(X, 7))


def test_several_inputs_outputs_and_a_constant():
    @pb.custom_gradient
    def f(a, b):
        def grad(du, dv):
            return du * b + dv, du * a

        return a * b, a + 0 * b, grad

    with forward_ad.dual_level():
        u, v = f(forward_ad.make_dual(X, torch.ones_like(X)), X + 1)
        torch.testing.assert_close(forward_ad.unpack_dual(u).tangent, X + 1)
        torch.testing.assert_close(forward_ad.unpack_dual(v).tangent, torch.ones_like(X))


def test_forward_over_reverse():
    f = pb.custom_gradient(lambda x: (x**3, lambda dy: 3 * x**2 * dy))
    with forward_ad.dual_level():
        x = forward_ad.make_dual(X.clone().requires_grad_(), torch.ones_like(X))
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        torch.testing.assert_close(forward_ad.unpack_dual(g).tangent, 6 * X)


def test_reverse_over_forward():
    f = pb.custom_gradient(lambda x: (x**3, lambda dy: 3 * x**2 * dy))
    x = X.clone().requires_grad_()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(X)))).tangent
        (g,) = torch.autograd.grad(tangent.sum(), x)
    torch.testing.assert_close(g, 6 * X)


def test_a_pushforward_wins():
    f = pb.custom_gradient(lambda x: (x * x, lambda dy: 2 * x * dy))

    @f.pushforward
    def _(dx, x):
        return 50 * dx

    torch.testing.assert_close(push(f, X, torch.ones_like(X)), torch.full_like(X, 50))
    torch.testing.assert_close(torch.func.vmap(torch.func.jacfwd(f))(X), torch.full_like(X, 50))


@pytest.mark.parametrize("way", ["dual level", "jvp", "vmap of jvp"])
def test_a_pullback_that_is_not_linear_is_refused(way):
    f = pb.custom_gradient(lambda x: (x * 1, lambda dy: dy * torch.abs(dy)))
    ways = {
        "dual level": lambda: push(f, X, torch.ones_like(X)),
        "jvp": lambda: torch.func.jvp(f, (X,), (X,)),
        "vmap of jvp": lambda: torch.vmap(lambda x: torch.func.jvp(f, (x,), (x,)))(X),
    }
    with pytest.raises(pb.errors.ForwardModeError, match="not linear in its cotangents"):
        ways[way]()


def test_linearity_is_measured_once():
    calls = []

    @pb.custom_gradient
    def f(x):
        calls.append(1)
        return x * 2, lambda dy: dy * 2

    push(f, X, X)
    first = len(calls)
    push(f, X, X)
    assert len(calls) - first < first


def test_captured_parameters_push_nothing():
    w = torch.nn.Parameter(X.clone())

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * w, [dy * x for _ in variables]

        return x * w, grad

    torch.testing.assert_close(push(f, X, torch.ones_like(X)), X)


@pytest.mark.parametrize(
    "push", [push, lambda f, x, t: torch.func.jvp(f, (x,), (t,))[1]], ids=["dual", "func"]
)
def test_what_a_pushforward_returns_is_held_against_the_output(push):
    def pushed_by(function):
        f = pb.custom_gradient(lambda x: (2 * x, lambda dy: 2 * dy))
        f.pushforward(function)
        return push(f, X, torch.ones_like(X))

    for wrong in (lambda dx, x: dx.sum(), lambda dx, x: dx.reshape(3, 1), lambda dx, x: torch.ones(5)):
        with pytest.raises(pb.errors.CotangentShapeError, match=r"for an output of shape \(3,\)"):
            pushed_by(wrong)
    assert pushed_by(lambda dx, x: 2 * dx.float()).dtype == X.dtype
    assert pushed_by(lambda dx, x: None).tolist() == [0.0] * 3
