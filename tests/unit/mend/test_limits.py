"""A search keeps to its CPU seconds and to its memory, whatever a candidate would take of them."""

import ast
import contextlib
import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from mending import WRONG

from pullback.checker.finding import Finding
from pullback.mend.bench import Bench
from pullback.mend.prove import Proof, Prover
from pullback.mend.search import mend
from pullback.mend.watch import ROOM, Watch, limited, resource


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


class Spread(Square):
    """One edit of a number here makes sixteen gigabytes of the ones; another edit is right."""

    @staticmethod
    def backward(ctx, d):
        (x,) = ctx.saved_tensors
        return d * 1 * x * torch.ones(2**16)[0]


linux = pytest.mark.xfail(sys.platform != "linux", reason="no other system tells and keeps a limit")


@linux
def test_a_candidate_that_wants_too_much_memory_costs_the_candidate(monkeypatch):
    tried, judge = [], Bench.judge
    monkeypatch.setattr(
        Bench, "judge", lambda self, tree, *a: tried.append(ast.unparse(tree)) or judge(self, tree, *a)
    )
    before = resource.getrlimit(resource.RLIMIT_DATA)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = mend(Spread.apply, (torch.tensor([0.3, -1.2, 2.0]),), {}, WRONG, budget=10.0)
    assert any("torch.ones(2 ** 32)" in text for text in tried)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024 < ROOM
    assert found.patches, (found.refused, found.tried)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@linux
def test_the_limit_is_there_while_candidates_run_and_never_wider_than_the_users():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with Watch().around():
        narrow, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with pytest.raises(MemoryError):
            np.empty(2 * ROOM, np.uint8)
        with limited(4 * ROOM):
            assert resource.getrlimit(resource.RLIMIT_DATA) == (narrow, hard)
        with contextlib.suppress(KeyError), limited(0):
            raise KeyError
        assert resource.getrlimit(resource.RLIMIT_DATA) == (narrow, hard)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert np.empty(2 * ROOM, np.uint8).size == 2 * ROOM


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


class Narrow(Square):
    """Refuse what lies outside its domain, and remember that it was asked."""

    asked: ClassVar[list[float]] = []

    @staticmethod
    def forward(ctx, x):
        Narrow.asked.append(float(x.min()))
        return Square.forward(ctx, x)


def test_nothing_outside_the_domain_is_asked_of_a_function():
    found = mend(Narrow.apply, (torch.tensor([0.3, 1.2, 2.0]),), {}, WRONG, budget=10.0, domain=(0.1, 3.0))
    assert found.patches
    assert min(Narrow.asked) >= 0.1 - 1e-6
