"""What a program asked of a call is what the checker asks: kept with each call, judged as it was meant."""

import functools

import pytest
import torch

import pullback as pb
from pullback.checker.settings import Settings
from pullback.record.checking import checked
from pullback.record.listening import recording
from pullback.record.recorder import Recorder
from pullback.report.entry import not_checked

SETTINGS = Settings(seed=1, order=1)


def verdicts(recorder):
    assert recorder.errors == []
    (rule,) = recorder.rules.values()
    entries = list(checked(rule, target="", settings=SETTINGS))
    assert not_checked(entries) == ""
    return [entry.report.verdict for entry in entries]


def entries(call):
    recorder = Recorder()
    with recording(recorder):
        call().sum().backward()
    return verdicts(recorder)


X = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
BAND = torch.eye(4) + 0.5 * torch.diag(torch.ones(3), 1)


class Shaped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.size = x.shape
        return 2 * x.reshape(size)

    @staticmethod
    def backward(ctx, g):
        return 2 * g.reshape(ctx.size), None


def test_a_size_is_an_argument_like_any_other():
    assert entries(lambda: Shaped.apply(X.clone().requires_grad_(), torch.Size([3, 4]))) == ["right"]


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, d, sign):
        ctx.save_for_backward(s, d)
        ctx.sign = sign
        return torch.sparse.mm(s, d)

    @staticmethod
    def backward(ctx, g):
        s, d = ctx.saved_tensors
        asked = ctx.needs_input_grad[0]
        ds = ctx.sign * (g @ d.t()).sparse_mask(s.coalesce()) if asked else None
        return ds, torch.sparse.mm(s.t(), g), None


@pytest.mark.parametrize(("sign", "verdict"), [(1, "right"), (-1, "wrong")])
def test_a_sparse_tensor_is_asked_by_the_numbers_in_it(sign, verdict):
    sparse = BAND.to_sparse().requires_grad_()
    assert entries(lambda: Product.apply(sparse, X.clone().requires_grad_(), sign)) == [verdict]


def test_a_sparse_tensor_that_nobody_asked_is_not_asked():
    assert entries(lambda: Product.apply(BAND.to_sparse(), X.clone().requires_grad_(), -1)) == ["right"]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.mark_dirty(x.mul_(2))
        return x

    @staticmethod
    def backward(ctx, g):
        return ctx.factor * g, None


@pytest.mark.parametrize(("factor", "verdict"), [(2, "right"), (3, "wrong")])
def test_a_function_that_works_in_place_is_judged(factor, verdict):
    assert entries(lambda: Doubled.apply(X.clone().requires_grad_() * 1, factor)) == [verdict]


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, module, sign, x, weight, bias):
        ctx.sign = sign
        ctx.save_for_backward(x, weight)
        return module(x)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return None, None, g @ weight, ctx.sign * g.t() @ x, g.sum(0)


@pytest.mark.parametrize(("sign", "verdict"), [(1, "right"), (-1, "wrong")])
def test_a_parameter_beside_its_module_is_one_tensor(sign, verdict):
    layer = torch.nn.Linear(3, 2)
    x = X.clone().requires_grad_()
    assert entries(lambda: Linear.apply(layer, sign, x, layer.weight, layer.bias)) == [verdict]


class Distance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return ((x - target) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        if ctx.needs_input_grad[1]:
            raise RuntimeError("targets have no gradient")
        x, target = ctx.saved_tensors
        return 2 * g * (x - target), None


def test_what_the_program_asked_no_gradient_of_is_not_asked():
    assert entries(lambda: Distance.apply(X.clone().requires_grad_(), torch.ones(4, 3))) == ["right"]


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, factor, x):
        ctx.run, ctx.factor = run, factor
        ctx.save_for_backward(x)
        with torch.no_grad():
            return run(x)

    @staticmethod
    def backward(ctx, g):
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError("this does not work with .grad(): use .backward()")
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.run(x)
        torch.autograd.backward(y, g)
        return None, None, ctx.factor * x.grad


@pytest.mark.parametrize(("factor", "verdict"), [(1, "right"), (2, "wrong")])
def test_a_function_that_wants_backward_gets_it(factor, verdict):
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    assert entries(lambda: Recomputed.apply(layer, factor, X.clone().requires_grad_())) == [verdict]


def test_a_call_that_cannot_be_recorded_is_not_checked_and_says_why():
    def full(leaf):
        raise MemoryError("no room for a copy")

    recorder = Recorder(freeze=full)
    with recording(recorder):
        for _ in range(3):
            Distance.apply(X.clone().requires_grad_(), torch.ones(4, 3)).backward()
    (rule,) = recorder.rules.values()
    found = list(checked(rule, target="", settings=SETTINGS))
    assert not_checked(found) == "3 calls of it could not be recorded: MemoryError: no room for a copy"
    assert [entry.report.verdict for entry in found] == ["undecided"]


def test_code_to_paste_is_code_whatever_a_static_looks_like():
    import ast

    recorder = Recorder()
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    with recording(recorder):
        Recomputed.apply(layer, 2, X.clone().requires_grad_()).sum().backward()
    (rule,) = recorder.rules.values()
    (entry,) = checked(rule, target="", settings=SETTINGS)
    pasted = entry.report.failures[0].reproducer
    ast.parse(pasted)
    assert "Recomputed.apply(argument_0, 2, x0)" in pasted


class Parametric(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, sign, x, *held):
        ctx.f, ctx.sign = f, sign
        ctx.save_for_backward(x, *held)
        return f(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, *held = ctx.saved_tensors
        with torch.enable_grad():
            y = ctx.f(x)
        found = torch.autograd.grad(y, held, g, allow_unused=True)
        return None, None, None, *(None if d is None else ctx.sign * d for d in found)


WEIGHT = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)


def by_weight(x):
    return x * WEIGHT


class Scaled:
    """Holds a tensor in a list, and a function."""

    def __init__(self, held, function):
        self.held, self.function = [held], function

    def __call__(self, x):
        return self.function(x) * self.held[0]


@pytest.mark.parametrize(("sign", "verdict"), [(1, "right"), (-1, "wrong")])
@pytest.mark.parametrize("kind", ["function", "partial", "method", "global", "object", "closure"])
def test_a_tensor_beside_what_holds_it_is_one_tensor(kind, sign, verdict):
    layer = torch.nn.Linear(3, 2)
    scale = layer.weight.sum()
    f, held = {
        "function": (lambda x: layer(x) * scale, (layer.weight, layer.bias, scale)),
        "partial": (functools.partial(torch.mul, scale), (scale,)),
        "method": (layer.forward, tuple(layer.parameters())),
        "global": (by_weight, (WEIGHT,)),
        "object": (Scaled(scale, torch.sin), (scale,)),
        "closure": (Scaled(torch.ones(()), lambda x: layer(x).sin()), tuple(layer.parameters())),
    }[kind]
    assert entries(lambda: Parametric.apply(f, sign, X, *held)) == [verdict]


class Layer(torch.nn.Module):
    """A rule as a method: it is handed an object beside the tensors, and answers for a parameter."""

    def __init__(self, factor):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.3, -0.8, 1.7]))
        self.factor = factor

    @pb.custom_gradient
    def scale(self, x, held):
        def grad(dy, variables=None):
            return dy * self.weight, [self.factor * (dy * x).sum(0)]

        return x * self.weight, grad


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "wrong")])
def test_the_parameter_of_a_method_is_checked_whatever_else_is_passed(factor, verdict):
    layer = Layer(factor)
    assert entries(lambda: layer.scale(X.clone().requires_grad_(), Scaled(0, torch.sin))) == [verdict]


def test_what_holds_a_tensor_has_it_again_after_a_check():
    held = torch.tensor(2.0, requires_grad=True)
    scaled = Scaled(held, torch.sin)
    assert entries(lambda: Parametric.apply(scaled, 1, X, held)) == ["right"]
    assert scaled.held[0] is held


class Integral(torch.autograd.Function):
    """The gradient of its network is asked for inside, by the parameters that this lists."""

    @staticmethod
    def forward(ctx, net, sign, x):
        ctx.net, ctx.sign = net, sign
        ctx.save_for_backward(x)
        with torch.no_grad():
            return net(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.net(x)
        found = torch.autograd.grad(y, [x, *ctx.net.parameters()], g)
        assert len(found) == 3
        return None, None, ctx.sign * found[0]


@pytest.mark.parametrize(("sign", "verdict"), [(1, "right"), (-1, "wrong")])
def test_a_network_lists_its_parameters_and_can_be_differentiated_by_them(sign, verdict):
    layer = torch.nn.Linear(3, 2)
    assert entries(lambda: Integral.apply(layer, sign, X.clone().requires_grad_())) == [verdict]


class Freeing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.x = x
        x.untyped_storage().resize_(0)
        return y

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def test_a_function_may_free_the_memory_of_its_input():
    assert entries(lambda: Freeing.apply(X.clone().requires_grad_() * 1)) == ["right"]
