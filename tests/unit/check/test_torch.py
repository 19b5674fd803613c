"""Checking on PyTorch: functions, operators and modules, and nothing of the program is changed."""

import threading

import numpy as np
import pytest
import torch

import pullback as pb
import pullback.checker
from pullback.view.torch.adapter import TorchAdapter
from pullback.view.torch.native import bypassed

X = torch.tensor([0.5, -1.0, 2.0])
QUICK = {"seed": 1, "xla": False, "export": False}


class Tripled(torch.autograd.Function):
    """Give a gradient of 3 where the derivative is 1."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, d):
        return 3.0 * d


kept = Tripled.apply


def slope(function):
    x = X.clone().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0][0].item()


def test_a_function_is_bypassed_wherever_its_apply_is_kept():
    with bypassed() as met:
        assert slope(kept) == slope(Tripled.apply) == 1.0
    assert [m.name for m in met] == ["Tripled", "Tripled"]
    assert slope(kept) == 3.0


@pb.custom_gradient
def tripled(x):
    return x * 1.0, lambda dy: 3.0 * dy


@pytest.mark.parametrize("rule", [kept, tripled], ids=["PyTorch's", "ours"])
def test_a_compiled_function_has_its_rule_after_a_check_and_is_bypassed_in_it(rule):
    function = torch.compile(lambda x: rule(x), backend="aot_eager")
    assert pb.check(function, X, **QUICK).causes == ["surrogate"]
    assert slope(function) == 3.0


def test_another_thread_is_not_bypassed():
    found = []
    with bypassed():
        thread = threading.Thread(target=lambda: found.append(slope(kept)))
        thread.start()
        thread.join()
    assert found == [3.0]


def test_a_plain_function_can_do_everything():
    table = pb.check(torch.sin, X, seed=1).capabilities
    assert set(table.values()) == {"yes"}
    names = "reverse, second order, forward, torch.compile, vmap, float32, float16, bfloat16, export"
    assert set(table) == set(names.split(", "))


def test_what_a_function_refuses_is_told_from_what_is_wrong():
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(torch.cos(x))
            return torch.sin(x)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, d):
            return d * ctx.saved_tensors[0]

    report = pb.check(Sine.apply, X, **QUICK)
    assert report.verdict == "right"
    assert {report.capabilities[k] for k in ("second order", "forward", "vmap")} == {"refused"}


def test_a_shape_that_pytorch_mends_is_told_of():
    class Bias(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, b):
            return x + b

        @staticmethod
        def backward(ctx, d):
            return d, d

    report = pb.check(Bias.apply, torch.ones(4, 3), torch.ones(3), **QUICK)
    assert report.verdict == "right"
    (note,) = [f for f in report.findings if f.mended]
    assert note.sentence == (
        "the gradient of `b` has shape (4, 3), the input (3,): axis 0 was broadcast and must be summed; "
        "PyTorch sums it in silence"
    )


def test_a_module_stays_as_it_was():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    report = pb.check(module, x, order=1, own_points=False, **QUICK)
    assert report.verdict == "right"
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    assert TorchAdapter(module, (x,), {}).subject().names == (
        "input",
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
    )


def test_the_code_of_a_module_runs():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(X + 3)

        def forward(self, x):
            return kept(x) * self.weight

    module = Scale()
    report = pb.check(module, X, **QUICK)
    shown = []
    exec(report.failures[0].reproducer, {"f": module, "print": shown.append})
    by_x, by_weight = (g.detach().numpy() for g in shown[0])
    np.testing.assert_allclose(by_x / by_weight, 3 * (X + 3) / X, rtol=1e-5)


def test_a_module_is_checked_in_float64():
    report = pb.check(torch.nn.Linear(3, 2), X[None], probes=["derivative"], seed=1)
    assert report.oracle == "differences in float64"


def test_an_operator_that_only_its_backward_makes_wrong_is_named():
    @torch.library.custom_op("pullback_tests::half", mutates_args=())
    def half(x: torch.Tensor) -> torch.Tensor:
        return x * x

    half.register_autograd(
        lambda ctx, d: d * ctx.x, setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0])
    )
    assert pb.check(half, X, **QUICK).causes == ["constant-factor"]
    with bypassed() as met:
        half(X)
    assert [m.name for m in met] == ["pullback_tests::half"]


def test_gradients_are_checked_inside_no_grad_too():
    with torch.no_grad():
        assert pb.check(torch.sin, X, **QUICK).verdict == "right"


def test_a_function_that_works_in_place_is_checked():
    x = X.clone()
    assert pb.check(lambda x: x.mul_(2), x, **QUICK).verdict == "right"
    assert torch.equal(x, X)


def test_a_sparse_tensor_moves_by_its_entries():
    report = pb.check(lambda x: 2 * x.to_dense(), torch.eye(2).to_sparse(), **QUICK)
    assert report.verdict == "right"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_precision_is_checked(dtype):
    assert pb.check(torch.tanh, X.to(dtype), **QUICK).verdict == "right"


def test_an_export_that_is_refused_prints_nothing(capfd):
    class Bounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if x.max() > 1e9:  # PyTorch prints its graph when it finds such a question
                raise ValueError("too large")
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    report = pb.check(Bounded.apply, torch.rand(3, dtype=torch.float64), seed=1, xla=False)
    assert report.capabilities["export"] == "no"
    assert "def forward" not in "".join(capfd.readouterr())


class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand(x.shape) > 0.5
        ctx.save_for_backward(mask, x)
        return x * x * mask

    @staticmethod
    def backward(ctx, g):
        mask, x = ctx.saved_tensors
        return 2 * g * x * mask


class MaskedAgain(Masked):
    @staticmethod
    def backward(ctx, g):
        _, x = ctx.saved_tensors
        return 2 * g * x * (torch.rand(x.shape) > 0.5)


@pytest.mark.parametrize(("rule", "verdict"), [(Masked, "right"), (MaskedAgain, "wrong")])
def test_a_rule_that_draws_is_judged_with_its_numbers_settled(rule, verdict):
    x = torch.linspace(-1.0, 2.0, 20)
    before = torch.random.get_rng_state()
    assert pb.check(rule.apply, x, seed=0, xla=False, export=False).verdict == verdict
    assert torch.equal(torch.random.get_rng_state(), before)


class Subspace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x.roll(1, -1)).detach().clone()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.zeros_like(g) if x.shape[-1] < 4 else g * torch.tanh(x) ** 2


def test_a_gradient_that_is_zero_at_a_smaller_shape_only_is_not_said_to_be_missing():
    x = torch.linspace(0.1, 2, 72, dtype=torch.float64).reshape(1, 8, 9)
    report = pb.check(Subspace.apply, x, seed=0, probes=["derivative"])
    assert report.verdict == "wrong"
    assert report.causes == []
    assert "wrong in all 72 entries" in report.failures[0].sentence


def test_a_function_is_checked_by_its_class_as_by_its_apply():
    by_class, by_apply = (pb.check(f, X, **QUICK) for f in (Tripled, kept))
    assert by_class.verdict == by_apply.verdict != "undecided"
    assert by_class.name == by_apply.name


class Poisson(torch.autograd.Function):
    """Keep what is between input and output: a constant to the second order, beside an input with None."""

    @staticmethod
    def forward(ctx, log_rate, count):
        rate = torch.exp(log_rate)
        ctx.save_for_backward(rate, count)
        return (rate - count * log_rate).sum()

    @staticmethod
    def backward(ctx, d):
        rate, count = ctx.saved_tensors
        return d * (rate - count), None


def test_a_second_order_is_shown_where_an_input_has_no_gradient():
    report = pb.check(Poisson.apply, torch.ones(4, 3) + X, torch.ones(4, 3), **QUICK)
    assert report.causes == ["residual-constant"]
    assert "create_graph=True" in report.failures[0].reproducer


class Trapezoids(torch.autograd.Function):
    """An integral over sorted knots, with a wrong gradient of the heights."""

    @staticmethod
    def forward(ctx, knots, height):
        ctx.save_for_backward(knots, height)
        return torch.diff(knots) * height

    @staticmethod
    def backward(ctx, g):
        (knots, _) = ctx.saved_tensors
        return None, g * (torch.diff(knots) + 0.1)


def test_code_to_paste_keeps_the_order_of_its_arguments():
    knots, height = torch.linspace(0.0, 1.0, 6), torch.tensor([0.5, -1.0, 2.0, 1.5, 0.3])
    report = pb.check(Trapezoids, knots, height, order=1, seed=0)
    assert "x0 = torch.tensor([0., 0.2" in report.failures[0].reproducer


class Weighed(torch.autograd.Function):
    """A sum whose last weight is tiny; every gradient is wrong, by a share that is largest for that one."""

    @staticmethod
    def forward(ctx, x):
        return (x * torch.tensor([1.0, 2.0, 1e-9], dtype=x.dtype)).sum()

    @staticmethod
    def backward(ctx, g):
        return g * torch.tensor([1.1, 2.3, 2e-6], dtype=g.dtype)


def test_the_entry_that_is_shown_is_not_a_small_one():
    report = pb.check(Weighed, torch.tensor([0.5, -1.0, 2.0]), order=1, seed=0)
    assert abs(report.failures[0].measured) >= 0.99


class Cubed(torch.autograd.Function):
    """Right for the weight 1.5, and for no other."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (weight**3 * x).detach()

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return None, (g * 4.5 * weight * x).sum()


def test_a_promise_of_one_argument_excuses_no_other():
    rows = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
    assert pb.check(Cubed, rows, torch.tensor(1.5), order=1, seed=1).verdict == "wrong"


class SquaredBeyond(torch.autograd.Function):
    """Is wrong by w for an x beyond 2.5, where a factor two is forgotten."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.where(x > 2.5, x * w * w, x * w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return torch.where(x > 2.5, g * w * w, g * w), torch.where(x > 2.5, g * x * w, g * x).sum()


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_an_order_of_the_arguments_hides_no_branch_that_keeps_it(seed):
    x, w = torch.tensor([0.3, 1.2, -0.7], requires_grad=True), torch.tensor(2.0, requires_grad=True)
    report = pb.check(SquaredBeyond.apply, x, w, seed=seed, order=1, xla=False)
    assert report.verdict == "wrong"
    assert "x" not in report.failures[0].where
