"""A gradient that is refused is undecided; one that fails is wrong."""

import numpy as np
import pytest
import torch

import pullback as pb

X = torch.tensor([0.3, -1.2, 2.0])


def raising(error):
    @pb.custom_gradient
    def square(x):
        def grad(dy):
            raise error

        return x * x, grad

    return square


@pytest.mark.parametrize("error", [NotImplementedError("not yet"), pb.errors.ForbiddenGradientError("no")])
def test_a_refusal_is_undecided(error):
    report = pb.check(raising(error), X, seed=0)
    assert report.verdict == "undecided"
    assert report.capabilities["reverse"] == "refused"


def test_a_failure_is_wrong():
    report = pb.check(raising(ZeroDivisionError("oh")), X, seed=0)
    assert report.verdict == "wrong"
    assert report.causes == ["pullback-raises"]


def test_an_external_function_without_a_gradient_is_a_refusal():
    @pb.external
    def outside(x):
        return np.sin(x)

    assert pb.check(outside, X, seed=0, xla=False, export=False).verdict == "undecided"
