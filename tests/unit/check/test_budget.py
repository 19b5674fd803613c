"""The budget of a check: CPU seconds, looked at before every evaluation, and a body that never returns."""

import itertools
import operator
import signal
import sys
import threading
from functools import partial
from types import SimpleNamespace

import pytest
import torch

import pullback as pb
from pullback.checker.budget import Budget, Spent
from pullback.checker.finding import Finding
from pullback.checker.inquiry import unfinished, verdict_of
from pullback.checker.settings import Settings
from pullback.clock import wait
from pullback.errors import OptionError
from pullback.rule import Intent

X = torch.tensor([0.5, 2.0])


class Endless(torch.autograd.Function):
    """Never return where an input is negative: at a point of the checker's own."""

    sign = 1

    @classmethod
    def forward(cls, ctx, x):
        while (x < 0).any():
            x.sum()
        ctx.save_for_backward(x)
        return x**3

    @classmethod
    def backward(cls, ctx, dy):
        return cls.sign * 3 * ctx.saved_tensors[0] ** 2 * dy


def test_a_body_that_never_returns_is_left_and_what_was_proven_stays():
    report = pb.check(Endless.apply, X, seed=1, budget=1)
    assert report.verdict == "right"
    assert report.resolution < 1e-9
    (left,) = [f for f in report.findings if f.reason == "budget"]
    assert (left.verdict, left.probe) == ("note", "derivative")
    assert "right, not finished" in str(report)
    # Nothing of it stays: neither the signal nor the trace.
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert sys.gettrace() is None or "pullback" not in str(sys.gettrace())


@pytest.mark.parametrize(("answered", "verdict"), [("derivative", "right"), ("contract", "undecided")])
def test_what_differs_on_purpose_is_decided_where_nothing_is_left_to_compare(answered, verdict):
    subject = SimpleNamespace(intent=Intent("differs"))
    findings = [Finding(answered, "note", "said")]
    findings.append(unfinished(subject, findings, "compiled", Settings()))
    assert verdict_of(subject, findings) == verdict


def test_the_wait_for_a_result_is_left_although_no_line_of_a_body_runs():
    # a thousand looks that take a millisecond each, in C
    looks = map(operator.contains, itertools.repeat([0] * 100_000), itertools.repeat(1, 1000))
    with pytest.raises(Spent), Budget(0.05).watching():
        wait(partial(next, looks, True))
    assert next(looks, True) is False


class Wrong(Endless):
    sign = -1


def test_a_wrong_one_stays_wrong_when_its_cause_cannot_be_found_in_time():
    report = pb.check(Wrong.apply, X, seed=1, budget=0.5)
    assert report.verdict == "wrong"


def test_a_profiler_keeps_its_signal():
    before = signal.signal(signal.SIGPROF, lambda *_: None)
    try:
        mine = signal.getsignal(signal.SIGPROF)
        assert pb.check(torch.sin, X, seed=1, probes=["derivative"]).verdict == "right"
        assert signal.getsignal(signal.SIGPROF) is mine
    finally:
        signal.signal(signal.SIGPROF, before)


def test_in_another_thread_it_is_looked_at_between_evaluations():
    found = []
    thread = threading.Thread(target=lambda: found.append(pb.check(torch.sin, X, seed=1, budget=1e-9)))
    thread.start()
    thread.join()
    assert found[0].verdict == "undecided"
    assert "undecided: budget" in str(found[0])


def test_no_budget_is_refused():
    with pytest.raises(OptionError, match="budget=0"):
        pb.check(torch.sin, X, budget=0)
