"""A rule as an operator of `torch.library`: checked, compiled, exported and trained."""

import itertools

import numpy as np
import pytest
import torch

import pullback as pb
from pullback.errors import DefinitionError, ExternalError, HostError, OutputError

# PyTorch 2.14 about itself, when `opcheck` looks at its own tensors
pytestmark = pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
)
_names = (f"pullback_test::f{i}" for i in itertools.count())


@pb.custom_gradient
def log1pexp(x):
    e = torch.exp(x)

    def grad(dy):
        return 3 * dy * (1 - 1 / (1 + e))

    return torch.log(1 + e), grad


@pb.custom_gradient
def scaled(x, y, factor: float = 2.0, *, negate: bool = False):
    sign = -1.0 if negate else 1.0

    def grad(dy, dz):
        return sign * factor * dy * y + dz, sign * factor * dy * x

    return (sign * factor * x * y, x + 0), grad


LOG = pb.operator(log1pexp, next(_names))
SCALED = pb.operator(scaled, next(_names), outputs=2)
X = torch.tensor([0.5, -1.0, 2.0])


def expected(x):
    return 3 * torch.sigmoid(x)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (LOG, (X.clone().requires_grad_(),)),
        (LOG, (X,)),
        (SCALED, (X.clone().requires_grad_(), X.clone().requires_grad_(), 3.0)),
        (SCALED, (X.clone().requires_grad_(), X, 3.0, True)),
    ],
)
def test_opcheck_passes(op, args):
    torch.library.opcheck(op, args)


def test_value_and_gradient_are_those_of_the_rule():
    x = X.clone().requires_grad_()
    (dx,) = torch.autograd.grad(LOG(x).sum(), x)
    assert torch.equal(LOG(X), log1pexp(X))
    assert torch.allclose(dx, expected(X))


def test_second_order_is_derived():
    x = X.double().requires_grad_()
    (dx,) = torch.autograd.grad(LOG(x).sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    s = torch.sigmoid(X.double())
    assert torch.allclose(ddx, 3 * s * (1 - s))


def test_statics_and_several_outputs():
    x, y = X.clone().requires_grad_(), (X + 1).requires_grad_()
    value, _ = SCALED(x, y, 3.0, negate=True)
    assert torch.allclose(value, -3 * X * (X + 1))
    dx, dy = torch.autograd.grad(value.sum(), (x, y))
    assert torch.allclose(dx, -3 * (X + 1))
    assert torch.allclose(dy, -3 * X)
    assert torch.allclose(torch.autograd.grad(SCALED(x, y)[1].sum(), x)[0], torch.ones(3))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiles_to_one_graph(backend):
    x = X.clone().requires_grad_()
    compiled = torch.compile(lambda x: LOG(x).sum(), fullgraph=True, backend=backend)
    (dx,) = torch.autograd.grad(compiled(x), x)
    assert torch.allclose(dx, expected(X))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return LOG(self.linear(x))


def test_an_exported_program_keeps_the_operator_and_trains():
    net = Net()
    exported = torch.export.export(net, (X[None],))
    assert "pullback_test.f0" in str(exported.graph)
    module = exported.module()
    module(X[None]).sum().backward()
    net(X[None]).sum().backward()
    assert net.linear.weight.grad.abs().sum() > 0
    found = dict(module.named_parameters())["linear.weight"].grad
    assert torch.equal(found, net.linear.weight.grad)


def test_the_example_tells_types():
    @pb.custom_gradient
    @pb.example(np.ones(2), 3)
    def power(x, n):
        return x**n, lambda dy: dy * n * x ** (n - 1)

    op = pb.operator(power, next(_names))
    x = X.clone().requires_grad_()
    (dx,) = torch.autograd.grad(op(x, 2).sum(), x)
    assert torch.allclose(dx, 2 * X)
    torch.library.opcheck(op, (x, 2))


def test_a_replacement_is_an_operator_too():
    def sine(x):
        return torch.sin(x)

    op = pb.operator(pb.with_gradient(sine, lambda dy, x: 5 * dy), next(_names))
    x = X.clone().requires_grad_()
    (dx,) = torch.autograd.grad(op(x).sum(), x)
    assert torch.equal(dx, torch.full((3,), 5.0))


def test_an_argument_that_is_handed_through_is_copied():
    @pb.custom_gradient
    def same(x):
        return x, lambda dy: 2 * dy

    op = pb.operator(same, next(_names))
    x = X.clone().requires_grad_()
    torch.library.opcheck(op, (x,))
    assert torch.equal(torch.autograd.grad(op(x).sum(), x)[0], torch.full((3,), 2.0))


BAD = {
    "a name": (lambda: pb.operator(log1pexp, "log1pexp"), 'a name of torch.library, "library::name"'),
    "no function": (lambda: pb.operator(3, "a::b"), "`f` to be a function"),
    "outputs": (lambda: pb.operator(log1pexp, "a::b", outputs=0), "how many tensors it returns"),
    "a list": (lambda: pb.operator(pb.custom_gradient(lambda *xs: 0), "a::b"), "what an operator can take"),
    "no tensor": (lambda: pb.operator(pb.custom_gradient(lambda n=1: 0), "a::b"), "no argument is a tensor"),
}


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD.keys())
def test_what_is_no_operator_is_refused(make, words):
    with pytest.raises(DefinitionError, match=words.replace("(", r"\(")):
        make()


def test_other_outputs_than_declared_are_refused():
    op = pb.operator(scaled, next(_names))
    with pytest.raises(OutputError, match=r"outputs=2"):
        op(X, X)


def test_a_body_that_draws_is_refused():
    @pb.custom_gradient
    def noisy(x):
        noise = torch.rand(3)
        return x * noise, lambda dy: dy * noise

    with pytest.raises(ExternalError, match="draws random numbers"):
        pb.operator(noisy, next(_names))(X)


def test_a_body_of_another_framework_is_refused():
    import tensorflow as tf

    @pb.custom_gradient
    def f(x):
        return tf.sin(x), lambda dy: dy * tf.cos(x)

    with pytest.raises(HostError, match="its body names TensorFlow"):
        pb.operator(f, next(_names))
