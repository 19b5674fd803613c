"""Every replacement on tensors of PyTorch: values, gradients, higher orders, forward mode."""

import pytest
import torch

import pullback as pb

X = torch.tensor([0.3, -0.7, 1.6], dtype=torch.float64)
DY = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
sigmoid = torch.sigmoid


def softmax_pull(x, dy):
    s = torch.softmax(x, -1)
    return s * (dy - (s * dy).sum())


def hot(x):
    return torch.nn.functional.one_hot(x.argmax(), len(x)).to(x.dtype)


# name: the replacement, its value, its gradient
TABLE = {
    "scale_gradient": (lambda x: pb.scale_gradient(x, 0.1), lambda x: x, lambda x, dy: 0.1 * dy),
    "scale by a tensor": (
        lambda x: pb.scale_gradient(x, torch.tensor([1, 2, 3])),
        lambda x: x,
        lambda x, dy: dy * torch.tensor([1, 2, 3]),
    ),
    "reverse_gradient": (lambda x: pb.reverse_gradient(x), lambda x: x, lambda x, dy: -dy),
    "stop_gradient": (lambda x: pb.stop_gradient(x) + 0 * x, lambda x: x, lambda x, dy: 0 * dy),
    "clip by value": (lambda x: pb.clip_gradient(x, value=1.0), lambda x: x, lambda x, dy: dy.clamp(-1, 1)),
    "clip by norm": (lambda x: pb.clip_gradient(x, norm=1.0), lambda x: x, lambda x, dy: dy / dy.norm()),
    "clip adaptively": (
        lambda x: pb.clip_gradient(x, adaptive=0.1),
        lambda x: x,
        lambda x, dy: dy / dy.norm() * 0.1 * x.norm(),
    ),
    "map_gradient": (lambda x: pb.map_gradient(x, torch.tanh), lambda x: x, lambda x, dy: torch.tanh(dy)),
    "heaviside": (
        lambda x: pb.heaviside(x),
        lambda x: (x >= 0).to(x.dtype),
        lambda x, dy: dy * 4 * sigmoid(4 * x) * (1 - sigmoid(4 * x)),
    ),
    "sign": (lambda x: pb.sign(x, sharpness=1.0), torch.sign, lambda x, dy: dy * (x.abs() <= 1)),
    "round": (lambda x: pb.round(x), torch.round, lambda x, dy: dy),
    "argmax_one_hot": (lambda x: pb.argmax_one_hot(x), hot, softmax_pull),
    "straight_through": (pb.straight_through(torch.floor), torch.floor, lambda x, dy: dy),
    "surrogate": (
        pb.surrogate(torch.sign, like=torch.tanh),
        torch.sign,
        lambda x, dy: dy * (1 - torch.tanh(x) ** 2),
    ),
    "with_gradient": (
        pb.with_gradient(torch.exp, lambda dy, x, output: 3 * dy * output),
        torch.exp,
        lambda x, dy: 3 * dy * torch.exp(x),
    ),
    "finite_gradient": (lambda x: pb.finite_gradient(x), lambda x: x, lambda x, dy: dy),
}
NOT_LINEAR = {"clip by value", "clip by norm", "clip adaptively", "map_gradient", "finite_gradient"}


def pull(f, dy):
    x = X.clone().requires_grad_()
    y = f(x)
    return y, torch.autograd.grad(y, x, dy)[0]


@pytest.mark.parametrize("name", TABLE)
def test_value_and_gradient(name):
    f, value, gradient = TABLE[name]
    y, dx = pull(f, DY)
    torch.testing.assert_close(y.detach(), value(X))
    torch.testing.assert_close(dx, gradient(X, DY))


@pytest.mark.parametrize("name", TABLE)
def test_second_order_is_the_derivative_of_the_gradient(name):
    f, _, gradient = TABLE[name]
    x, dy = X.clone().requires_grad_(), DY.clone().requires_grad_()
    (dx,) = torch.autograd.grad(f(x), x, dy, create_graph=True)
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    got = torch.autograd.grad((dx * weights).sum(), [x, dy], allow_unused=True, materialize_grads=True)
    x, dy = X.clone().requires_grad_(), DY.clone().requires_grad_()
    loss = (gradient(x, dy) * weights).sum()
    want = torch.autograd.grad(loss, [x, dy], allow_unused=True, materialize_grads=True)
    if name == "with_gradient":  # its output has the gradient that was given, and not that of the function
        want = (3 * want[0], want[1])
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", TABLE)
def test_under_transforms(name):
    f, _, gradient = TABLE[name]
    torch.testing.assert_close(torch.func.vjp(f, X)[1](DY)[0], gradient(X, DY))
    if name != "finite_gradient":  # without a counter it tells of what it finds, and looks at values
        batch = torch.stack([X, 2 * X])
        got = torch.vmap(lambda x: torch.func.vjp(f, x)[1](DY)[0])(batch)
        torch.testing.assert_close(got, torch.stack([gradient(x, DY) for x in batch]))


@pytest.mark.parametrize("name", TABLE)
def test_forward_mode_is_the_transpose_or_refused(name):
    f, _, gradient = TABLE[name]
    if name in NOT_LINEAR:
        with pytest.raises(pb.errors.ForwardModeError):
            torch.func.jvp(f, (X,), (DY,))
        return
    columns = torch.stack([gradient(X, e) for e in torch.eye(3, dtype=torch.float64)])
    torch.testing.assert_close(torch.func.jvp(f, (X,), (DY,))[1], columns @ DY)


def test_forbidden_gradients():
    x = X.clone().requires_grad_()
    y = pb.forbid_gradient(x, reason="labels")
    with pytest.raises(pb.errors.ForbiddenGradientError, match="labels"):
        y.sum().backward()
    with pytest.raises(pb.errors.ForbiddenGradientError, match="labels"):
        torch.func.jvp(lambda x: pb.forbid_gradient(x, reason="labels"), (X,), (X,))


def test_a_counter_is_added_to():
    counter = torch.zeros((), dtype=torch.int64)
    x = X.clone().requires_grad_()
    y = pb.finite_gradient(x, counter=counter)
    (dx,) = torch.autograd.grad(y, x, torch.tensor([float("nan"), 1, float("inf")], dtype=torch.float64))
    assert dx.tolist() == [0, 1, 0]
    assert counter == 2


def test_without_a_counter_it_is_said(capsys):
    x = X.clone().requires_grad_()
    torch.autograd.grad(pb.finite_gradient(x, label="h"), x, torch.full_like(X, float("nan")))
    assert "gradient of h" in capsys.readouterr().err


def test_a_module_keeps_its_own_gradients():
    layer = torch.nn.Linear(3, 3, dtype=torch.float64)
    f = pb.with_gradient(layer, lambda dy, x: 9 * dy)
    x = X[None].clone().requires_grad_()
    f(x).sum().backward()
    assert x.grad.tolist() == [[9, 9, 9]]
    torch.testing.assert_close(layer.weight.grad, X.expand(3, 3))


@pytest.mark.parametrize("slope", ["sigmoid", "arctan", "fast_sigmoid", "triangular", "straight_through"])
def test_slopes_are_those_of_their_smooth_steps(slope):
    from pullback.replace.steps import smooth_heaviside

    _, got = pull(lambda x: pb.heaviside(x, slope=slope), DY)
    _, want = pull(lambda x: smooth_heaviside(x, slope=slope), DY)
    torch.testing.assert_close(got, want)


def test_a_function_that_shows_no_signature_is_refused_in_our_words():
    x = X.clone().requires_grad_()
    two_outputs = pb.custom_gradient(lambda x: (x * 1, x * 2, torch.cos))
    for f in (pb.with_gradient(torch.sin, torch.cos), lambda x: two_outputs(x)[0]):
        with pytest.raises(pb.errors.GradSignatureError, match="`cos` did not take the 2 arguments"):
            f(x).sum().backward()
    with pytest.raises(pb.errors.GradSignatureError, match="`mul` did not take the 1 argument it"):
        pb.map_gradient(x, torch.mul).sum().backward()
    with pytest.raises(pb.errors.SurrogateError, match="`mul` did not take the 1 argument it"):
        pb.surrogate(lambda x: torch.round(x), like=torch.mul)(x)
    (dx,) = torch.autograd.grad(pb.with_gradient(torch.square, torch.mul)(x).sum(), x)
    torch.testing.assert_close(dx, X)  # and one that takes them is handed them


def test_an_error_inside_a_function_stays_what_it_is():
    def broken(dy):
        return dy + "one"

    x = X.clone().requires_grad_()
    for f in (lambda x: pb.map_gradient(x, broken), pb.with_gradient(torch.sin, broken)):
        with pytest.raises(TypeError) as caught:
            f(x).sum().backward()
        assert caught.type is TypeError
    with pytest.raises(TypeError) as caught:
        pb.surrogate(lambda x: torch.round(x), like=broken)(x)
    assert caught.type is TypeError
