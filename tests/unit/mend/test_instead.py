"""The last resort is said where the body alone is right, and nowhere else."""

import numpy as np
import pytest
import torch

from pullback.checker.settings import Settings
from pullback.mend.instead import instead

ASKED = Settings(seed=1, xla=False, export=False)
X = (torch.tensor([0.4, 1.2, -0.7]),)


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0]


class Outside(Half):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.square(x.detach().numpy()))


class Stopped(Half):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.detach()


def test_a_body_that_the_framework_differentiates_needs_no_rule():
    said = instead(Half.apply, X, {}, ASKED)
    assert said.startswith("delete the rule: the framework's own gradient is right here, and costs about ")


@pytest.mark.parametrize(
    "function",
    [Outside.apply, Stopped.apply, torch.sin],
    ids=["not differentiable", "wrong as well", "no rule"],
)
def test_it_is_not_said_where_it_is_not_so(function):
    assert instead(function, X, {}, ASKED) is None
