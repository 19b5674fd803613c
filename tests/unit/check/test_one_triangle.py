"""What reads one triangle is asked along symmetric matrices, at second order, too."""

import pytest
import torch

import pullback as pb


def mirrored(a):
    return a.tril() + a.tril(-1).mT


class Lower(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return mirrored(a)

    @staticmethod
    def backward(ctx, g):
        return (g + g.mT) / 2


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return (mirrored(a) @ mirrored(a) * mirrored(a)).sum() / 3

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * (a @ Lower.apply(a))


class Frozen(Cubed):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * (a @ Lower.apply(a).detach())


A = torch.tensor([[1.0, 0.3, -0.2], [0.3, 2.0, 0.5], [-0.2, 0.5, -1.0]], dtype=torch.float64)


@pytest.mark.parametrize(("rule", "verdict"), [(Cubed, "right"), (Frozen, "wrong")])
def test_a_gradient_that_reads_both_triangles(rule, verdict):
    report = pb.check(rule.apply, A, seed=0, own_points=False, probes=["derivative", "second_order"])
    assert report.verdict == verdict
