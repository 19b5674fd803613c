"""Three and more equal entries: each order of them is an honest choice, whatever the seed."""

import numpy as np
import pytest
import torch

import pullback as pb


class Sort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        order = np.argsort(x.detach().numpy(), kind="stable")
        ctx.back = torch.tensor(np.argsort(order))
        return torch.tensor(x.detach().numpy()[order])

    @staticmethod
    def backward(ctx, g):
        return g[ctx.back]


class Doubled(Sort):
    @staticmethod
    def backward(ctx, g):
        return 2 * g[ctx.back]


X = torch.tensor([2.0, 3.0, 3.0, 3.0, -3.0, 0.5, 0.5, 0.5, 0.5])


@pytest.mark.parametrize("seed", range(6))
def test_an_order_of_equal_entries_is_a_choice(seed):
    asked = {"seed": seed, "order": 1, "own_points": False, "probes": ["derivative"]}
    assert pb.check(Sort.apply, X, **asked).verdict == "right"
    assert pb.check(Doubled.apply, X, **asked).verdict == "wrong"
