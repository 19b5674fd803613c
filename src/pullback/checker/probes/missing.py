"""Does a gradient flow to every input that moves the output?

A host gives None where nothing connects an input to the output: the function left the framework, or cut the
connection. A rule may return None on purpose; anything else that moves the output has a derivative.
"""

from __future__ import annotations

import numpy as np

from pullback.checker.cause import listed
from pullback.checker.draw import cotangents
from pullback.checker.finding import Finding
from pullback.checker.numeric import derivative_test
from pullback.checker.probe import probe
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.view.subject import Arrays, Cotangents, Subject


@probe(rank=25)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Take None for zero, and see whether the function agrees."""
    if subject.intent.kind == "differs" or not subject.forward(subject.inputs):
        return []
    given = cotangents(subject, settings.rng(24))
    try:
        claimed = subject.pullback(subject.inputs, given)
    except Exception:  # the contract probe says so
        return []
    silent = [k for k, (d, g) in enumerate(zip(subject.differentiable, claimed)) if d and g is None]

    def nothing(inputs: Arrays, cotangents: Arrays) -> Cotangents:
        return tuple(np.zeros_like(x) for x in inputs)

    moving = {}
    for k in silent:  # each alone: one that moves nothing is not named beside one that does
        only = tuple(i == k for i in range(len(subject.inputs)))
        problem = Problem(subject.oracle_forward, nothing, subject.inputs, only)
        outcome = derivative_test(problem, settings.rng(25), settings)
        if outcome.verdict == "wrong" and outcome.worst is not None:
            moving[subject.names[k]] = outcome.worst.measured
    if not moving:
        return []
    names = listed(list(moving))
    return [
        Finding(
            "missing",
            "note" if subject.is_rule else "wrong",
            f"no gradient flows to {names} (None), and the output moves with it",
            None if subject.is_rule else "no-gradient",
            "" if subject.is_rule else "stay inside the framework: NumPy and constants cut the gradient off",
            where=names,
            measured=max(moving.values(), key=abs),
            claimed=0.0,
            inputs=subject.inputs,
            cotangents=given,
        )
    ]
