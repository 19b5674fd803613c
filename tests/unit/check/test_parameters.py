"""Parameters that a rule of PyTorch reads are its inputs, and a check leaves every one as it was."""

import pytest
import torch

import pullback as pb

QUICK = {"seed": 1, "xla": False, "export": False}
X = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]])
CASES = pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "wrong")])


class Scaled(torch.nn.Module):
    """A rule as a method, which answers for the parameter that it reads through `self`."""

    def __init__(self, factor):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.3, -0.8, 1.7]))
        self.register_buffer("calls", torch.zeros(()))
        self.factor = factor

    @pb.custom_gradient
    def scale(self, x):
        def grad(dy, variables=None):
            return dy * self.weight, [self.factor * (dy * x).sum(0)]

        return x * self.weight, grad

    def forward(self, x):
        self.calls += 1
        return self.scale(x)


def judged(function, module, name, verdict):
    before = {key: value.clone() for key, value in module.state_dict().items()}
    report = pb.check(function, X, **QUICK)
    assert (report.verdict, [f.where for f in report.failures]) == (
        verdict,
        [f"`{name}`"] * (verdict == "wrong"),
    )
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    assert module.weight.dtype == torch.float32
    return report


@CASES
def test_the_parameter_that_a_method_reads_is_checked(factor, verdict):
    module = Scaled(factor)
    judged(module.scale, module, "self.weight", verdict)


@CASES
def test_so_is_that_of_a_module_with_such_a_rule_inside(factor, verdict):
    module = Scaled(factor)
    judged(module, module, "weight", verdict)


@CASES
def test_so_is_one_that_a_rule_reads_by_a_name(factor, verdict):
    module = Scaled(factor)
    weight = module.weight

    @pb.custom_gradient
    def scale(x):
        return x * weight, lambda dy, variables=None: (dy * weight, [factor * (dy * x).sum(0)])

    judged(scale, module, "weight", verdict)


def test_a_reproducer_sets_the_parameter(capsys):
    module = Scaled(2.0)
    (failure,) = judged(module.scale, module, "self.weight", "wrong").failures
    exec(failure.reproducer, {"scale": module.scale})
    said = capsys.readouterr().out.splitlines()[-1].replace(",", "").split()
    assert float(said[-1]) == pytest.approx(2 * float(said[-3]), rel=1e-4)
