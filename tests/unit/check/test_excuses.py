"""Nobody is accused in error: promises of arguments, zero up to rounding, flags, and what has no gradient."""

import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback.checker.promises import broken
from pullback.errors import WrongGradientError

QUICK = {"xla": False, "export": False}


@pytest.mark.parametrize(
    ("given", "other", "kind"),
    [
        ([[1.0, 2.5]], [[1.0, -2.5]], "sign"),
        ([[1.0, -2.0], [2.5, 0.0]], [[1.0, -2.0], [0.5, 0.0]], "order"),
        ([[-1.0, 2.5]], [[2.5, 2.5]], "distinct"),
        ([[-1.0, 0.5, 2.5]], [[2.5, 0.5, -1.0]], "sorted"),
        ([[0, 0, 3]], [[0, 3, 0]], "sorted"),
        ([[2.0, -3.0]], [[2.5, -3.0]], "whole"),
        ([[-1.0, 2.5]], [[-7.0, 0.5]], None),
        ([3, 2.5], [0, -1.0], "sign"),
    ],
)
def test_a_broken_promise_is_named(given, other, kind):
    found = broken(tuple(map(np.array, given)), tuple(map(np.array, other)), "ab")
    assert (found and found[0]) == kind


def test_indices_without_repeats_stay_without():
    given, other = np.array([[0, 1], [1, 0]]), np.array([[0, 0], [1, 0]])
    assert broken((given,), (other,), ["index"])[0] == "distinct"


class Quadratic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, middle, x):
        ctx.save_for_backward(middle, x)
        return x.T @ middle @ x

    @staticmethod
    def backward(ctx, g):
        middle, x = ctx.saved_tensors
        return x @ g @ x.T, middle @ x @ (g + g.T)  # right where `middle` is symmetric


@pytest.mark.parametrize(
    ("middle", "verdict"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], "right"),
        ([[1.0, 0.0], [0.0, 1.0]], "right"),
        ([[0.0, 1.0], [1.0, 0.0]], "right"),
        ([[1.0, 0.5], [0.5, -2.0]], "right"),
        ([[1.0, 0.5], [0.0, -2.0]], "wrong"),
    ],
)
def test_a_rule_for_symmetric_matrices_is_right_where_it_is_given_one(middle, verdict):
    x = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]])
    report = pb.check(Quadratic.apply, torch.tensor(middle), x, seed=0, order=1, **QUICK)
    assert report.verdict == verdict


class Minimum(torch.autograd.Function):
    """Where a quadratic form is least; the gradient by its matrix is `made` of that of any matrix."""

    @staticmethod
    def forward(ctx, made, form, p):
        ctx.made = made
        z = torch.linalg.solve(form, -p)
        ctx.save_for_backward(form, z)
        return z

    @staticmethod
    def backward(ctx, g):
        form, z = ctx.saved_tensors
        d = torch.linalg.solve(form.T, -g)
        return None, ctx.made(torch.outer(d, z)), d


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (lambda g: (g + g.T) / 2, "right"),
        (lambda g: g, "right"),
        (lambda g: g + g.T, "wrong"),
        (lambda g: g.T, "wrong"),
        (lambda g: (g + g.T).tril() / 2, "wrong"),
    ],
)
def test_a_gradient_by_a_symmetric_matrix_may_be_symmetric(made, verdict):
    form = torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]], dtype=torch.float64)
    p = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    report = pb.check(Minimum.apply, made, form, p, seed=0, order=1, **QUICK)
    assert report.verdict == verdict


class Weighted(torch.autograd.Function):
    """A sum whose parts are of different sizes, with a gradient that is off by `factors`."""

    @staticmethod
    def forward(ctx, weights, factors, *parts):
        ctx.slopes = [w * f for w, f in zip(weights, factors)]
        ctx.save_for_backward(*parts)
        return sum(w * part.sin().sum() for w, part in zip(weights, parts))

    @staticmethod
    def backward(ctx, g):
        return None, None, *(s * part.cos() * g for s, part in zip(ctx.slopes, ctx.saved_tensors))


@pytest.mark.parametrize(
    ("weights", "factors", "verdict"),
    [
        ((1.0, 1.0), (1 + 2e-10, 1 - 2e-10), "right"),
        ((1.0, 1.0), (1 + 1e-8, 1.0), "wrong"),
        ((1e10, 1.0), (1.0, 2.0), "wrong"),
        ((1e10, 1.0), (1.0, 0.0), "wrong"),
    ],
)
def test_a_gap_that_a_tolerance_leaves_is_no_error_but_of_what_is_small_itself(weights, factors, verdict):
    parts = [torch.tensor([0.5, -1.0, 0.7], dtype=torch.float64), torch.tensor([0.3], dtype=torch.float64)]
    report = pb.check(Weighted.apply, weights, factors, *parts, seed=0, order=1, own_points=False, **QUICK)
    assert report.verdict == verdict
    assert verdict == "wrong" or report.resolution >= 1e-10


def polar(radius, angle):
    return torch.polar(radius, angle)


def test_a_radius_that_is_positive_stays_so():
    radius, angle = (
        torch.tensor([0.5, 2.0], dtype=torch.float64),
        torch.tensor([0.3, -1.0], dtype=torch.float64),
    )
    for seed in range(4):
        assert pb.check(polar, radius, angle, seed=seed, **QUICK).verdict == "right"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (lambda x: torch.softmax(x, -1).sum(), "right"),
        (lambda x: (x / x.norm()).norm(), "right"),
        (lambda x: (x - x.mean()).mean(), "undecided"),  # its outputs are rounding alone
    ],
    ids=["softmax", "norm", "mean"],
)
def test_zero_up_to_rounding_has_one_verdict(function, verdict, dtype):
    x = torch.tensor(np.random.default_rng(0).normal(size=7), dtype=dtype)
    given = {"probes": ["derivative"], "own_points": False, **QUICK}
    assert {pb.check(function, x, seed=seed, **given).verdict for seed in range(20)} == {verdict}


def test_a_gradient_that_is_not_asked_for_is_not_judged():
    x = torch.tensor([0.5, -1.0], requires_grad=True)

    def loss(x, target):
        return torch.nn.functional.soft_margin_loss(x, target)

    assert pb.check(loss, x, torch.tensor([1.0, -1.0]), seed=0, **QUICK).verdict == "right"


def test_an_output_without_a_gradient_is_not_judged_beside_one_that_has_one():
    assert (
        pb.check(lambda x: (x.sin(), x.detach() ** 2), torch.tensor([0.5, -1.0]), seed=0, **QUICK).verdict
        == "right"
    )


def test_what_cuts_the_gradient_off_is_found():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(WrongGradientError, match="no gradient flows to `v`"):
        pb.testing.assert_gradient(lambda v: tf.constant(v.numpy() ** 2), x, seed=0, **QUICK)


def test_an_input_that_moves_nothing_needs_no_gradient():
    x = tf.constant([0.5, 2.0])
    assert pb.check(lambda a, b: a * tf.floor(b), x, x, seed=0, **QUICK).verdict == "right"


@pytest.mark.parametrize(
    ("forward", "verdict"),
    [
        (lambda x: tf.roll(x, 1, -1), "right"),
        (lambda x: tf.concat([x[:, -1:], x[:, :-1]], -1), "wrong"),
    ],
)
def test_what_the_framework_mixes_in_a_batch_is_no_fault_of_a_rule_over_it(forward, verdict):
    @tf.custom_gradient
    def rolled(x):
        return forward(x), lambda dy: tf.roll(dy, -1, -1)

    x = tf.constant([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]])
    report = pb.check(rolled, x, seed=0, probes=["derivative", "batching"], **QUICK)
    assert report.verdict == verdict
    assert [f.answer for f in report.findings if f.probe == "batching"] == ["no"]


def test_only_an_input_that_moves_the_output_is_said_to_miss_its_gradient():
    x = torch.tensor([0.5, -1.0])

    @pb.custom_gradient
    def scaled(x, w, unused):
        return w * x, lambda dy: (dy * w, None, None)

    found = [f for f in pb.check(scaled, x, x, x, seed=0, **QUICK).findings if f.probe == "missing"]
    assert [(f.where, f.verdict) for f in found] == [("`w`", "note")]


def test_a_probe_that_fails_costs_its_answer_only(monkeypatch):
    from pullback.checker import probe

    def fails(subject, settings):
        raise ZeroDivisionError("nothing to divide")

    found = probe.probes()
    monkeypatch.setitem(found, "mutation", probe.Probe(fails, 100))
    report = pb.check(torch.sin, torch.tensor([0.5, -1.0]), seed=0, **QUICK)
    assert report.verdict == "right"
    assert any("ZeroDivisionError: nothing to divide" in f.sentence for f in report.findings)


@pytest.mark.parametrize("seed", [2, 4])
def test_a_zero_derivative_is_not_lost_in_half_precision(seed):
    @pb.custom_gradient
    def total(x):
        e = torch.exp(x - x.max())
        y = e / e.sum()
        return y.sum(), lambda dy: dy * y * (1 - y.sum())

    x = torch.tensor(np.random.default_rng(seed).normal(size=6)).bfloat16()
    report = pb.check(total, x, seed=0, probes=["derivative", "precision"], **QUICK)
    assert report.verdict in ("right", "undecided")


def test_the_resolution_is_that_of_the_dtype_that_ships():
    single = pb.check(torch.exp, torch.tensor([0.5, -1.0]), seed=0, **QUICK)
    double = pb.check(torch.exp, torch.tensor([0.5, -1.0], dtype=torch.float64), seed=0, **QUICK)
    assert single.resolution >= 2.0**-25 > double.resolution


def test_a_sparse_tensor_moves_by_its_entries():
    matrix = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    assert pb.check(torch.sparse.mm, matrix, torch.tensor([[1.0], [2.0]]), seed=0, **QUICK).verdict == "right"


class Column(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x[:, None] * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x[:, None]


def test_the_axis_to_sum_is_the_one_that_was_broadcast():
    x, y = torch.tensor([0.5, -1.0, 2.0]), torch.arange(9.0).reshape(3, 3) + 0.3
    report = pb.check(Column.apply, x, y, seed=0, probes=["contract"], **QUICK)
    (finding,) = (f for f in report.findings if f.cause == "broadcast-not-reduced")
    assert "axis 1 was broadcast" in finding.sentence


def test_what_no_gradient_was_asked_of_is_said():
    x, y = torch.tensor([0.5, -1.0], requires_grad=True), torch.tensor([1.0, 3.0])
    report = pb.check(torch.mul, x, y, seed=0, probes=["contract"], **QUICK)
    assert [f.sentence for f in report.findings] == [
        "no gradient was asked of `argument 1`: it was not checked"
    ]


class Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scratch, value):
        scratch.data[0] = value
        return scratch

    @staticmethod
    def backward(ctx, g):
        return g, g[0]


@pytest.mark.parametrize(("said", "verdict"), [({}, "wrong"), ({"differs": "a scratch"}, "right")])
def test_a_declared_rule_may_write_into_its_input(said, verdict):
    rule = type("Fresh", (Written,), {})
    if said:
        pb.declare(rule, **said)
    report = pb.check(rule.apply, torch.zeros(2, 3), torch.tensor([0.5, 1.0, 2.0]), seed=0, **QUICK)
    assert report.verdict == verdict
    assert "the call changes scratch in place" in [f.sentence for f in report.findings]


def inside_float32(slope):
    """Make a rule that computes in float32 whatever it is given, and whose gradient is off by a factor."""

    class Coarse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.sin(3 * x.float()).to(x.dtype)

        @staticmethod
        def backward(ctx, dy):
            return (slope * 3 * torch.cos(3 * ctx.saved_tensors[0].float()) * dy.float()).to(dy.dtype)

    return Coarse.apply


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_function_that_computes_in_float32_inside_is_judged_as_one_of_float32(dtype):
    x = torch.tensor([0.3, -1.2, 0.7], dtype=dtype)
    report = pb.check(inside_float32(1.0), x, seed=1, **QUICK)
    assert report.verdict == "right"
    assert 1e-9 < report.resolution < 1e-3
    assert pb.check(inside_float32(1.02), x, seed=1, **QUICK).verdict != "right"


def test_digits_that_a_pass_does_not_need_have_one_verdict_whichever_directions_deny_them():
    def stepped(x):
        return torch.sin(x) + 1e-10 * torch.floor(3 * x)  # steps that no small difference sees

    x = torch.linspace(0.3, 3.1, 12, dtype=torch.float64)
    options = {**QUICK, "own_points": False, "probes": ["derivative"]}
    assert {pb.check(stepped, x, seed=seed, **options).verdict for seed in range(12)} == {"right"}
    rule = pb.custom_gradient(lambda x: (torch.sin(x), lambda dy: dy * (torch.cos(x) + 1e-7)))
    assert {pb.check(rule, x, seed=seed, **options).verdict for seed in range(4)} == {"wrong"}


@pytest.mark.parametrize(("differentiable", "verdict"), [(True, "wrong"), (False, "undecided")])
def test_what_is_too_rough_at_the_given_point_is_called_wrong_elsewhere_only_with_a_witness(
    differentiable, verdict
):
    class Rough(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            noise = torch.where(x.abs() < 2, 1e-2 * torch.sin(1e14 * x.detach()), 0)  # of a search
            return (x if differentiable else x.detach()) ** 2 + noise

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return torch.where(x.abs() < 2, 2 * dy * x, 3 * dy * x)

    report = pb.check(Rough.apply, torch.tensor([0.7, -1.3]), seed=0, order=1, **QUICK)
    assert report.verdict == verdict, report


@pytest.mark.parametrize(("off", "verdict"), [(0.0, "right"), (3e-10, "right"), (1e-6, "wrong")])
def test_a_symmetric_gradient_may_miss_by_the_tolerance_of_a_solver(off, verdict):
    a, b = torch.tensor([0.5, -1.0, 2.0]).double(), torch.tensor([1.5, 0.3, -0.7]).double()

    class Between(torch.autograd.Function):
        @staticmethod
        def forward(ctx, matrix):
            return a @ matrix @ b

        @staticmethod
        def backward(ctx, g):
            return (1 + off) * g * (torch.outer(a, b) + torch.outer(b, a)) / 2

    given = torch.tensor([[1.0, 0.5, 0.2], [0.5, -2.0, 0.1], [0.2, 0.1, 0.7]]).double()
    assert pb.check(Between.apply, given, seed=0, order=1, **QUICK).verdict == verdict


def test_ends_of_bags_stay_in_their_order():
    weight, words, ends = torch.linspace(-1, 1, 20).reshape(10, 2), [1, 5, 4, 5, 9], [0, 0, 3]

    def bags(weight, words, ends):
        return torch.nn.functional.embedding_bag(words, weight, ends, mode="mean")

    report = pb.check(
        bags, weight.double(), torch.tensor(words), torch.tensor(ends), seed=0, order=1, **QUICK
    )
    assert report.verdict == "right"


def test_what_cancels_to_nothing_is_nobodys_fault():
    x = torch.tensor([-4.827], dtype=torch.float64)

    def normed(x, scale):  # of one entry, which is its own mean
        return torch.native_layer_norm(x, (1,), scale, None, 1e-5)[0]

    for scale in (x, x.clone()):
        assert pb.check(normed, x, scale, seed=0, order=1, **QUICK).verdict != "wrong"


def test_a_triangle_that_is_not_read_is_nobodys_fault_where_digits_are_few():
    torch.manual_seed(27)
    factor = torch.randn(2, 5, 5, dtype=torch.float64).tril()  # a condition of 10⁷
    b = torch.randn(2, 5, 5, dtype=torch.float64)
    assert pb.check(torch.cholesky_solve, b, factor, seed=27, order=1, **QUICK).verdict == "right"
