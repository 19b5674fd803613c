"""A name is said only if it holds at the given point and its size; without one, the report says where.

And the code of a report, pasted into a process that knows nothing, prints the numbers of the report.
"""

import ast
import re
import types

import jax
import misleading
import neutral
import numpy as np
import pytest
import torch
from test_neutral import HOSTS, arguments

import pullback as pb
from pullback.checker import cause, check
from pullback.report.block import block


@pytest.fixture(autouse=True)
def _narrow():
    """Code for JAX switches 64 bits on; another test must not see them."""
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", misleading.NAMES)
def test_no_name_misleads(name, host):
    function, at, said, never = misleading.NAMES[name]
    report = check(function, *arguments(at, host), seed=1, xla=False, export=False)
    assert report.verdict == "wrong"
    assert said in report.failures[0].sentence
    assert not never & set(report.causes)
    printed(report, function)


def test_a_dropped_factor_is_no_matter_of_the_shape():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved_tensors[1], dy  # neither the factor nor the sum

    x, w = (torch.as_tensor(misleading.normal(*shape)) for shape in ((4, 3), (3,)))
    report = check(Scale.apply, x, w, seed=1, xla=False, export=False)
    assert "broadcast-not-reduced" not in report.causes
    assert "that of `w` is wrong" in report.failures[0].sentence


def test_a_branch_that_is_forgotten_is_no_matter_of_the_operands():
    @pb.custom_gradient
    def hinge_without_its_mask(a, p, n):
        xp = pb.namespace(a)

        def grad(dy):
            dy = xp.expand_dims(dy, axis=1)
            return 2 * dy * (n - p), -2 * dy * (a - p), 2 * dy * (a - n)

        apart = xp.sum((a - p) ** 2 - (a - n) ** 2, axis=1) + 1
        return xp.maximum(apart, 0 * apart), grad

    a = torch.as_tensor(misleading.normal(4, 5))
    report = check(hinge_without_its_mask, a, a + 0.3, a / 2, seed=1, xla=False, export=False)
    assert (report.verdict, report.causes) == ("wrong", [])
    assert "that of `p` is wrong in 5 of 20 entries, all at index 2 of axis 0" in report.failures[0].sentence


@pytest.mark.parametrize("step", [0.1, 0.03])
def test_what_an_approximation_leaves_is_no_rounding(step):
    @pb.custom_gradient
    def adjoint_of_an_integrator(y):
        xp = pb.namespace(y)

        def slopes(y, a):
            return xp.sin(y), -a * xp.cos(y)

        def moved(y, a, h):
            k = [slopes(y, a)]
            for part in (h / 2, h / 2, h):
                k.append(slopes(y + part * k[-1][0], a + part * k[-1][1]))
            return (u + h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]) for i, u in enumerate((y, a)))

        a = 0 * y
        for _ in range(40):
            y, a = moved(y, a, step)
        end = y

        def grad(dy):
            y, a = end, dy
            for _ in range(40):
                y, a = moved(y, a, -step)
            return a

        return end, grad

    report = check(adjoint_of_an_integrator, torch.tensor([0.5, -1.2, 2.0], dtype=torch.float64), seed=1)
    assert report.verdict == "wrong"
    assert report.causes == []


def test_a_cause_that_fails_costs_the_cause_only(monkeypatch):
    def search(evidence):
        raise IndexError("a fault of the cause")

    broken = types.SimpleNamespace(SLUG="broken", RANK=0, search=search)
    real = cause.causes()
    monkeypatch.setattr(cause, "causes", lambda: (broken, *real))
    report = check(neutral.WRONG["square_without_two"][0], torch.ones(3), seed=1, xla=False, export=False)
    assert report.causes == ["constant-factor"]


def test_without_a_pattern_the_report_shows_entries():
    function, at, *_ = misleading.NAMES["three_entries_without_a_pattern"]
    report = check(function, *arguments(at, "PyTorch"), seed=1, xla=False, export=False)
    assert "wrong in 3 of 12 entries, all at index 2 of axis 0" in report.failures[0].sentence
    rows = report.failures[0].where.splitlines()
    assert rows[0].split() == ["entry", "claimed", "measured"]
    assert [row[: row.index("]") + 1] for row in rows[1:]] == ["x[2, 0]", "x[2, 1]", "x[2, 3]"]
    for row in rows[1:]:
        claimed, measured = map(float, row.split("]")[1].split())
        assert claimed != pytest.approx(measured, rel=1e-4)
    assert rows[2] in block(report)


def numbers(code):
    tree = ast.walk(ast.parse(code))
    return [n for n in tree if isinstance(n, ast.Constant) and type(n.value) in (int, float, complex)]


def printed(report, function):
    """Run the code of a report, and hold what it prints against the report."""
    failure = report.failures[0]
    shown = []
    exec(failure.reproducer, {report.name: function, "f": function, "print": shown.append})
    found = re.fullmatch(r".*: measured (\S+), claimed (\S+)", shown[-1])
    assert found is not None, failure.reproducer
    measured, claimed = map(float, found.groups())
    assert measured == pytest.approx(failure.measured, rel=1e-5, abs=1e-9)
    assert claimed == pytest.approx(failure.claimed, rel=1e-5, abs=1e-9, nan_ok=True)
    assert len(numbers(failure.reproducer)) <= 12, failure.reproducer
    return measured, claimed


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", neutral.WRONG)
def test_a_wrong_rule_gets_its_cause_on_every_host_and_code_that_prints_its_numbers(name, host):
    function, at, known = neutral.WRONG[name]
    report = check(function, *arguments(at, host), seed=1, xla=False, export=False)
    assert report.verdict == "wrong"
    assert known in report.causes, [f.sentence for f in report.failures]
    if name == "bias_not_summed":  # there is no gradient of its shape to print
        return
    measured, claimed = printed(report, function)
    assert not np.isclose(measured, claimed, rtol=1e-3)


@pb.custom_gradient
def square_rule(x):
    return x * x, lambda dy: dy * x


def test_code_to_paste_imports_what_can_be_imported():
    report = check(square_rule, torch.ones(3), seed=1, xla=False, export=False)
    assert f"from {__name__} import square_rule" in report.failures[0].reproducer
    local = check(neutral.WRONG["square_without_two"][0], torch.ones(3), seed=1, xla=False, export=False)
    assert "import square_without_two" not in local.failures[0].reproducer
    names = {}
    exec(report.failures[0].reproducer, names)
    assert "measured" in names
