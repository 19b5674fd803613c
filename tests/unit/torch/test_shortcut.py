"""The shorter way of a call: open to bodies that reach nothing, closed as soon as they do."""

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

import pullback as pb
from pullback.errors import CapturedTensorError, CotangentShapeError, UnsupportedInputError
from pullback.hosts.torch.shortcut import ShortNode

X = torch.tensor([0.3, -0.7], requires_grad=True)
WEIGHT = torch.tensor(2.0, requires_grad=True)


def double(x):
    return 2 * x


def by_weight(x):
    return WEIGHT * x


helper = alias = double


@pb.custom_gradient
def by_helper(x):
    return helper(x), lambda dy: dy * 2


@pb.custom_gradient
def by_alias(x):
    return helper(x) + alias(x) - helper(x), lambda dy: dy * 2


def shortcuts(rule, *args):
    return rule.rule.shortcuts.get((len(args), type(args[0])))


def test_a_rule_that_reaches_nothing_takes_it_from_the_second_call_on():
    @pb.custom_gradient
    def sine(x):
        return torch.sin(x), lambda dy: dy * torch.cos(x)

    assert not shortcuts(sine, X)
    gradients = []
    for _ in range(3):
        (gradient,) = torch.autograd.grad(sine(X).sum(), X)
        gradients.append(gradient)
    assert shortcuts(sine, X)
    assert all(torch.equal(gradient, torch.cos(X)) for gradient in gradients)


def test_a_tuple_of_constants_is_one_and_a_tuple_with_a_tensor_is_none():
    def scaled(factors):
        @pb.custom_gradient
        def rule(x):
            return factors[0] * x, lambda dy: dy * factors[0]

        return rule

    for factors, short in (((2.0, ("a", None)), True), ((torch.tensor(2.0), 1), False)):
        rule = scaled(factors)
        for _ in range(2):
            torch.autograd.grad(rule(X).sum(), X)
        assert bool(shortcuts(rule, X)) is short


def test_an_example_keeps_no_rule_from_it():
    @pb.custom_gradient
    @pb.example(np.array([0.3]))
    def sine(x):
        return torch.sin(x), lambda dy: dy * torch.cos(x)

    for rule in (sine, pb.ops.rms_norm, pb.ops.softmax):
        for _ in range(3):
            rule(X)
        assert shortcuts(rule, X)


def test_a_call_with_constants_takes_one_for_each_of_them():
    @pb.custom_gradient
    def power(x, exponent, *, scale=1.0):
        return scale * x**exponent, lambda dy: dy * scale * exponent * x ** (exponent - 1)

    for _ in range(3):
        for exponent, scale in ((2, 0.5), (3, 0.5), (2, 2.0)):
            y = power(X, exponent, scale=scale)
            assert torch.equal(y, scale * X**exponent)
            (gradient,) = torch.autograd.grad(y.sum(), X)
            assert torch.allclose(gradient, scale * exponent * X ** (exponent - 1))
    assert len(power.rule.shortcuts) == 3
    x = X.double().detach().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: power(x, 3, scale=0.5), x)


def test_a_call_with_an_object_takes_none():
    @pb.custom_gradient
    def scaled(x, by):
        return x * by["factor"], lambda dy: dy * by["factor"]

    for _ in range(3):
        scaled(X, {"factor": 2.0})
    assert not scaled.rule.shortcuts


def test_whole_numbers_among_its_tensors_open_no_second_one():
    @pb.custom_gradient
    def taken(x, at, *, scale=1.0):
        return x[at] * scale, lambda dy: {"x": torch.zeros_like(x).index_add(0, at, dy * scale)}

    for _ in range(5):
        (gradient,) = torch.autograd.grad(taken(X, torch.tensor([1]), scale=3.0).sum(), X)
        assert gradient.equal(torch.tensor([0.0, 3.0]))
    assert len(taken.rule.shortcuts) == 1


def test_one_of_another_framework_keeps_no_rule_from_it():
    import tensorflow

    x = tensorflow.ones(2)

    @pb.custom_gradient
    def double(x):
        return x * 2, lambda dy: dy * 2

    for _ in range(3):
        with tensorflow.GradientTape() as tape:
            tape.watch(x)
            y = double(x)
        assert tape.gradient(y, x).numpy().tolist() == [2, 2]
    for _ in range(3):
        double(X)
    assert shortcuts(double, X)


def test_a_grad_that_closes_over_nothing_takes_it():
    @pb.custom_gradient
    def double(x):
        return 2 * x, lambda dy: dy * 2

    for _ in range(3):
        y = double(X)
        assert torch.autograd.grad(y.sum(), X)[0].equal(torch.full((2,), 2.0))
    assert hasattr(y.grad_fn, "kept")


@pytest.mark.parametrize(("rule", "name"), [(by_helper, "helper"), (by_alias, "alias")])
def test_a_name_that_means_something_else_closes_it(rule, name, monkeypatch):
    for _ in range(3):
        rule(X)
    assert shortcuts(rule, X)
    monkeypatch.setitem(globals(), name, by_weight)
    with pytest.raises(CapturedTensorError, match="WEIGHT"):
        rule(X)
    assert not shortcuts(rule, X)


@pytest.mark.parametrize("given", [((), {"factor": 3.0}), ((3.0,), {}), ((), {"factor": 3})])
def test_a_call_with_options_takes_it_too(given):
    @pb.custom_gradient
    def times(x, factor=1.0, *, name="one"):
        def grad(dy):
            return dy * factor if name == "one" else dy * torch.nan

        return x * factor, grad

    args, options = given
    for _ in range(3):
        (gradient,) = torch.autograd.grad(times(X, *args, name="one", **options).sum(), X)
        assert torch.equal(gradient, torch.full((2,), 3.0))
    assert len(times.rule.shortcuts) == 1
    (gradient,) = torch.autograd.grad(times(X, 2.0, name="two").sum(), X)  # other options of the same types
    assert torch.equal(times(X, 2.0, name="two"), X * 2)
    assert gradient.isnan().all()


def test_options_that_are_equal_and_not_the_same_take_one_each():
    @pb.custom_gradient
    def signed(x, zero):
        return torch.copysign(x, torch.tensor(zero)), lambda dy: dy * np.copysign(1.0, zero)

    for _ in range(3):
        for zero in (0.0, -0.0, np.nan):
            assert torch.equal(signed(X, zero), torch.copysign(X, torch.tensor(zero)))
    assert len(signed.rule.shortcuts) == 3


class Counting(TorchFunctionMode):
    """Count the products that are computed."""

    def __init__(self):
        super().__init__()
        self.products = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.products += function in (torch.Tensor.mul, torch.Tensor.__rmul__)
        return function(*args, **(kwargs or {}))


def test_what_is_unusual_goes_the_long_way_with_what_was_run():
    @pb.custom_gradient
    def both(x):
        return x.mul(2), x.mul(3), lambda dy, dz: 2 * dy + 3 * dz

    both(X)
    for _ in range(3):
        with Counting() as counting:
            y, z = both(X)
        assert counting.products == 2
        (gradient,) = torch.autograd.grad(y.sum() + z.sum(), X)
        assert torch.equal(gradient, torch.full((2,), 5.0))
    assert shortcuts(both, X)


def in_a_row(x):
    s, c = torch.sin(x), torch.cos(x)
    return s, c, lambda ds, dc: ds * c - dc * s


def in_a_tuple(x):
    s, c = torch.sin(x), torch.cos(x)
    return (s, c), lambda ds, dc: ds * torch.cos(x) - dc * s


def in_a_list(x):
    s, c = torch.sin(x), torch.cos(x)
    return [s, c], lambda ds, dc: ds * c - dc * s


def alone_in_a_tuple(x):
    c = torch.cos(x)
    return (torch.sin(x),), lambda ds: ds * c


def twice(x):
    s = torch.sin(x)
    return (s, s), lambda da, db: (da + db) * torch.cos(x)


def with_an_input(x):
    return (torch.sin(x), x), lambda ds, dx: ds * torch.cos(x) + dx


@pytest.mark.parametrize(
    ("body", "short"),
    [
        (in_a_row, True),
        (in_a_tuple, True),
        (in_a_list, False),
        (alone_in_a_tuple, True),
        (twice, False),
        (with_an_input, False),
    ],
)
def test_several_outputs_are_those_of_the_first_call(body, short):
    rule = pb.custom_gradient(body)

    def seen():
        x = torch.tensor([0.3, -0.7], requires_grad=True)
        outputs = rule(x)
        found = [type(outputs), len(outputs)]
        for y in outputs:  # one without the others, and then all of them
            found += torch.autograd.grad(y.sum(), x, retain_graph=True)
        (first,) = torch.autograd.grad(sum(y.pow(3).sum() for y in outputs), x, create_graph=True)
        found += [first.detach(), *torch.autograd.grad(first.sum(), x)]
        taken = issubclass(type(outputs[0].grad_fn)._forward_cls, ShortNode)
        return taken, [part.tolist() if isinstance(part, torch.Tensor) else part for part in found]

    (first, expected), second = seen(), seen()
    assert not first
    assert second == (False, expected)  # whether it draws random numbers is known now
    assert expected[2] == torch.cos(X.detach()).tolist()
    assert [seen() for _ in range(3)] == [(short, expected)] * 3


def test_another_number_of_outputs_is_read_anew():
    @pb.custom_gradient
    def rule(x, many):
        return tuple(x * (i + 1) for i in range(int(many))), lambda *dys: (sum(dys) * x / x, None)

    for count in (2, 2, 3, 1, 2):
        assert len(rule(X, torch.tensor(float(count)))) == count


def test_the_contract_holds_on_it():
    @pb.custom_gradient
    def summed(x):
        return x * 2, lambda dy: (dy * x).sum()

    for _ in range(3):
        with pytest.raises(CotangentShapeError, match=r"shape \(\) for argument `x` of shape \(2,\)"):
            summed(X).sum().backward()


def test_autocast_and_no_grad_do_not_take_it():
    @pb.custom_gradient
    def product(x, y):
        return x @ y, lambda dy: (dy * y, dy * x)

    y = torch.ones(2, requires_grad=True)
    for _ in range(2):
        product(X, y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.autograd.grad(product(X, y), X)[0].dtype == torch.float32
    with torch.no_grad():
        assert product(X, y).grad_fn is None
    assert torch.func.grad(product)(X.detach(), y.detach()).equal(torch.ones(2))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_keywords_and_other_kinds_of_tensors_go_the_long_way():
    @pb.custom_gradient
    def sine(x):
        return torch.sin(x), lambda dy: dy * torch.cos(x)

    for _ in range(2):
        sine(X)
    assert shortcuts(sine, X)
    assert torch.autograd.grad(sine(x=X).sum(), X)[0].equal(torch.cos(X))
    with pytest.raises(UnsupportedInputError, match="sparse"):
        sine(X.detach().to_sparse())
    with pytest.raises(UnsupportedInputError, match="nested"):
        sine(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    assert sine(torch.tensor([1, 2])).grad_fn is None


@pytest.mark.filterwarnings("ignore")  # PyTorch says that tracing by TorchScript is deprecated
def test_a_traced_call_computes_anew():
    @pb.custom_gradient
    def sine(x):
        return torch.sin(x), lambda dy: dy * torch.cos(x)

    for _ in range(2):
        sine(X)
    traced = torch.jit.trace(lambda x: sine(x * 2), (X,), check_trace=False)
    y = torch.tensor([0.5, 0.1], requires_grad=True)
    assert torch.allclose(traced(y), torch.sin(2 * y))
    assert torch.allclose(torch.autograd.grad(traced(y).sum(), y)[0], 2 * torch.cos(2 * y))
