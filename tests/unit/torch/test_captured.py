"""What a body reaches unasked: parameters get gradients by `variables=`, any other tensor is refused."""

import pytest
import torch

import pullback as pb

X = torch.tensor([1.0, 2.0])
FACTOR = torch.tensor([3.0, 4.0], requires_grad=True) * 1


@pb.custom_gradient
def global_capture(x):
    def grad(dy):
        return dy * FACTOR

    return x * FACTOR, grad


def closure_capture():
    factor = torch.tensor([3.0, 4.0], requires_grad=True) * 1

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * factor

        return x * factor, grad

    return f


class Holder:
    def __init__(self):
        self.factor = torch.tensor([3.0, 4.0], requires_grad=True) * 1

    def rule(self):
        @pb.custom_gradient
        def f(x):
            def grad(dy):
                return dy * self.factor

            return x * self.factor, grad

        return f


def helper_capture():
    factor = torch.tensor([3.0, 4.0], requires_grad=True) * 1

    def helper(x):
        return torch.stack([x, factor]).sum(0)

    @pb.custom_gradient
    def f(x):
        return helper(x), lambda dy: dy

    return f


CAPTURES = {
    "a global": (lambda: global_capture, "`FACTOR`"),
    "a closure": (closure_capture, "`factor`"),
    "an attribute": (lambda: Holder().rule(), "`self.factor`"),
    "a helper's closure": (helper_capture, "`factor`"),
}


@pytest.mark.parametrize("kind", CAPTURES)
def test_a_captured_tensor_that_is_differentiated_is_refused(kind):
    make, shown = CAPTURES[kind]
    for _ in range(2):  # the code is known at the second time
        with pytest.raises(pb.errors.CapturedTensorError, match=rf"{shown}(.|\n)*detach\(\)"):
            make()(X)


@pytest.mark.parametrize("kind", CAPTURES)
def test_nothing_is_refused_where_nobody_differentiates(kind):
    with torch.no_grad():
        CAPTURES[kind][0]()(X)


def test_what_is_cut_off_or_only_asked_for_its_shape_is_fine():
    w = torch.tensor([3.0, 4.0], requires_grad=True)

    class Has:
        factor = w * 1

    @pb.custom_gradient
    def f(x):
        kept = Has.factor.detach() + torch.zeros_like(Has.factor) + Has.factor.shape[0]
        return x * kept, lambda dy: dy * kept

    x = X.clone().requires_grad_()
    f(x).sum().backward()
    assert x.grad.tolist() == [5, 6]


def test_a_captured_tensor_that_is_also_an_argument_is_fine():
    w = X.clone().requires_grad_()

    @pb.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 2 * w

    f(w).sum().backward()
    assert w.grad.tolist() == [2, 4]


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
        self.register_buffer("shift", torch.tensor([0.5, 0.5]))

    @pb.custom_gradient
    def forward(self, x):
        def grad(dy, variables=None):
            return dy * self.weight, [10 * dy * x for _ in variables]

        return x * self.weight + self.shift, grad


def test_parameters_that_a_method_reaches_get_their_gradients():
    first, second = Scaled(), Scaled()
    for module in (first, second):
        x = X.clone().requires_grad_()
        module(x).sum().backward()
        assert module.weight.grad.tolist() == [10, 20]
        assert x.grad.tolist() == [3, 4]


def test_parameters_get_gradients_also_where_no_argument_needs_one():
    module = Scaled()
    module(X).sum().backward()
    assert module.weight.grad.tolist() == [10, 20]


def test_a_frozen_parameter_is_a_constant_until_it_is_thawed():
    module = Scaled().requires_grad_(False)
    assert not module(X).requires_grad
    module.requires_grad_(True)
    module(X).sum().backward()
    assert module.weight.grad.tolist() == [10, 20]


def test_second_derivatives_reach_a_captured_parameter():
    w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * w**2, [dy * 2 * w * x for _ in variables]

        return x * w**2, grad

    x = X.clone().requires_grad_()
    (dx,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    (dxdw,) = torch.autograd.grad(dx.sum(), w)
    assert dxdw.tolist() == [6, 8]
    (dw,) = torch.autograd.grad(f(x).sum(), w, create_graph=True)
    (dwdw,) = torch.autograd.grad(dw.sum(), w)
    assert dwdw.tolist() == [2, 4]


class Careless(Scaled):
    @pb.custom_gradient
    def forward(self, x):
        return x * self.weight, lambda dy: dy * self.weight


def test_a_parameter_without_a_place_is_refused_by_name():
    with pytest.raises(pb.errors.CapturedVariableError, match=r"trainable variable `self\.weight`"):
        Careless()(X)


def test_a_parameter_in_a_closure_is_refused_by_name():
    bias = torch.nn.Parameter(X.clone())
    f = pb.custom_gradient(lambda x: (x + bias, lambda dy: dy))
    with pytest.raises(pb.errors.CapturedVariableError, match="`bias`"):
        f(X)


def test_a_list_of_another_length_is_refused():
    bias = torch.nn.Parameter(X.clone())

    @pb.custom_gradient
    def f(x):
        return x + bias, lambda dy, variables=None: (dy, [])

    with pytest.raises(pb.errors.CotangentCountError, match="0 cotangents for 1 captured"):
        f(X.clone().requires_grad_()).sum().backward()


def test_gradgrad_has_no_place_for_a_parameter():
    bias = torch.nn.Parameter(X.clone())

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return (dy, lambda ddx: ddx), [dy for _ in variables]

        return x + bias, grad

    x = X.clone().requires_grad_()
    with pytest.raises(pb.errors.SecondOrderError, match="pass the variable as an argument: bias"):
        torch.autograd.grad(f(x).sum(), x, create_graph=True)


def test_with_gradient_answers_for_the_parameters_of_a_module():
    layer = torch.nn.Linear(2, 2)

    def gradient(dy, x, variables):
        return dy @ layer.weight, [7 * torch.ones_like(v) for v in variables]

    f = pb.with_gradient(lambda x: layer(x), gradient)
    f(X[None]).sum().backward()
    assert layer.bias.grad.tolist() == [7, 7]
