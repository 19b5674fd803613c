"""A search keeps to its CPU seconds, and runs no candidate at inputs of which it could fill the memory."""

from dataclasses import replace

import pytest
import torch
from mending import WRONG

from pullback.checker.finding import Finding
from pullback.mend.prove import Proof, Prover
from pullback.mend.search import mend


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, d):
        (x,) = ctx.saved_tensors
        return d * x


class Wide(Square):
    @staticmethod
    def forward(ctx, x):
        if x.numel() < 5000:
            raise ValueError("too short")
        return Square.forward(ctx, x)


def test_a_proof_gets_no_more_than_what_is_left(monkeypatch):
    given = []
    monkeypatch.setattr(Prover, "prove", lambda self, tried, budget: given.append(budget))
    mend(Square.apply, (torch.tensor([0.3, -1.2, 2.0]),), {}, WRONG, budget=0.7)
    assert given
    assert max(given) < 0.7


@pytest.mark.parametrize("reason", ["", "budget"])
def test_a_check_that_ran_out_of_its_budget_proves_nothing(reason):
    found = Finding("derivative", "note", "something", reason=reason)
    assert Proof((), replace(WRONG, verdict="right", findings=(found,))).holds is (not reason)


def test_inputs_that_stay_large_are_refused_in_one_sentence():
    found = mend(Wide.apply, (torch.ones(6000),), {}, WRONG, budget=2.0)
    assert found.refused == "its inputs are large, and it does not run at smaller ones"
