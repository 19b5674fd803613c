"""`torch.func` differentiates a rule by its own pullback, in any composition of transforms."""

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import pullback as pb


@pb.custom_gradient
def exp(x):
    """Twice the true derivative, so that nobody can have gone past the rule."""
    y = torch.exp(x)

    def grad(dy):
        return 2 * dy * y

    return y, grad


X = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
ONES = torch.ones_like(X)


def total(x):
    return exp(x).sum()


def diagonal(matrix):
    assert torch.equal(matrix, torch.diag(torch.diagonal(matrix)))
    return torch.diagonal(matrix)


# The derivative of the rule is 2·exp, and so are those of higher orders, which differentiate that.
TRANSFORMS = {
    "grad": (lambda: grad(total)(X), 2),
    "vjp": (lambda: vjp(exp, X)[1](ONES)[0], 2),
    "jvp": (lambda: jvp(exp, (X,), (ONES,))[1], 2),
    "vmap": (lambda: vmap(exp)(X), 1),
    "jacrev": (lambda: diagonal(jacrev(exp)(X)), 2),
    "jacfwd": (lambda: diagonal(jacfwd(exp)(X)), 2),
    "vmap of grad": (lambda: vmap(grad(exp))(X), 2),
    "grad of vmap": (lambda: grad(lambda x: vmap(exp)(x).sum())(X), 2),
    "vmap of jvp": (lambda: vmap(lambda x: jvp(exp, (x,), (torch.ones_like(x),))[1])(X), 2),
    "jvp of vmap": (lambda: jvp(vmap(exp), (X,), (ONES,))[1], 2),
    "vmap of vmap": (lambda: vmap(vmap(exp))(X[None])[0], 1),
    "hessian": (lambda: diagonal(hessian(total)(X)), 2),
    "reverse over reverse": (lambda: diagonal(jacrev(jacrev(total))(X)), 2),
    "reverse over forward": (lambda: diagonal(jacrev(jacfwd(total))(X)), 2),
    "forward over forward": (lambda: diagonal(jacfwd(jacfwd(total))(X)), 2),
    "grad of grad of vmap": (lambda: vmap(grad(grad(exp)))(X), 2),
    "third order": (lambda: vmap(grad(grad(grad(exp))))(X), 2),
    "third order forward": (lambda: vmap(jacfwd(jacfwd(jacfwd(exp))))(X), 2),
    "jvp of jvp of grad": (lambda: vmap(jacfwd(jacfwd(grad(exp))))(X), 2),
    "grad of vmap of grad": (lambda: grad(lambda x: vmap(grad(exp))(x).sum())(X), 2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_takes_the_gradient_of_the_rule(name):
    run, factor = TRANSFORMS[name]
    torch.testing.assert_close(run(), factor * torch.exp(X))


def test_vmap_over_any_axis_and_over_some_arguments():
    @pb.custom_gradient
    def scaled(x, w):
        def grad(dy):
            return dy * w, (dy * x).sum()

        return x * w, grad

    x, w = torch.randn(3, 5, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64)
    torch.testing.assert_close(vmap(scaled, in_dims=(1, None), out_dims=1)(x, w), 2 * x)
    w = w.requires_grad_()
    vmap(scaled, in_dims=(1, None))(x, w).sum().backward()
    torch.testing.assert_close(w.grad, x.sum())


def test_the_backward_pass_of_a_batch_outside_of_transforms():
    x = X.clone().requires_grad_()
    y = vmap(exp)(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    torch.testing.assert_close(g, 2 * torch.exp(X))
    torch.testing.assert_close(h, 2 * torch.exp(X))


def test_several_outputs_and_an_integer_one():
    @pb.custom_gradient
    def largest(x):
        value, index = torch.max(x, 0)

        def grad(dv, di):
            return torch.zeros_like(x).index_add(0, index[None], dv[None] * 3)

        return value, index, grad

    assert grad(lambda x: largest(x)[0])(X).tolist() == [0, 0, 3]
    values, indices = vmap(largest)(torch.stack([X, -X]))
    assert indices.tolist() == [2, 1]
    torch.testing.assert_close(values, torch.tensor([1.1, 0.7], dtype=torch.float64))
    assert vmap(grad(lambda x: largest(x)[0]))(torch.stack([X, -X])).tolist() == [[0, 0, 3], [0, 3, 0]]


def test_an_input_returned_as_it_is():
    torch.testing.assert_close(grad(lambda x: pb.scale_gradient(x, 0.1).sum())(X), 0.1 * ONES)
    torch.testing.assert_close(jvp(lambda x: pb.scale_gradient(x, 0.1), (X,), (ONES,))[1], 0.1 * ONES)
    torch.testing.assert_close(vmap(lambda x: pb.scale_gradient(x, 0.1))(X), X)


def test_an_explicit_second_order_under_transforms():
    @pb.custom_gradient
    def cube(x):
        def grad(dy):
            return dy * 3 * x**2, lambda ddx: ddx * dy * 600 * x

        return x**3, grad

    torch.testing.assert_close(vmap(grad(grad(cube)))(X), 600 * X)


def test_no_grad_inside_a_transform():
    def f(x):
        with torch.no_grad():
            y = exp(x)
        return (x * y).sum()

    torch.testing.assert_close(grad(f)(X), torch.exp(X))


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([2.0, 3.0, 4.0], dtype=torch.float64))

    @pb.custom_gradient
    def forward(self, x):
        def grad(dy, variables=None):
            return 10 * dy * self.w, [100 * dy * x for _ in variables]

        return x * self.w, grad


def test_captured_parameters_are_lifted():
    module = Scaled()
    parameters = dict(module.named_parameters())
    g = grad(lambda p: functional_call(module, p, (X,)).sum())(parameters)
    torch.testing.assert_close(g["w"], 100 * X)
    batch = torch.stack([X, -X])
    per_example = vmap(grad(lambda p, x: functional_call(module, p, (x,)).sum()), in_dims=(None, 0))
    torch.testing.assert_close(per_example(parameters, batch)["w"], 100 * batch)
    torch.testing.assert_close(grad(lambda x: module(x).sum())(X), 10 * module.w)


def test_a_parameter_is_trained_through_a_batch():
    module = Scaled()
    vmap(module)(torch.stack([X, X])).sum().backward()
    torch.testing.assert_close(module.w.grad, 200 * X)


def test_a_captured_tensor_that_a_transform_follows_is_refused():
    def f(w):
        @pb.custom_gradient
        def scaled(x):
            def grad(dy):
                return dy * w

            return x * w, grad

        return scaled(X).sum()

    with pytest.raises(pb.errors.CapturedTensorError, match="`w`"):
        grad(f)(X)


def test_a_captured_example_of_a_batch_is_lifted():
    def f(x, w):
        @pb.custom_gradient
        def scaled(x):
            def grad(dy):
                return dy * w

            return x * w, grad

        return scaled(x)

    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(vmap(f)(X, w), X * w)
    torch.testing.assert_close(vmap(grad(f))(X, w), w)
