"""One input's value stands where another's belongs, or an input with its sign turned."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence

SLUG = "wrong-operand"
RANK = 70
CONFIRM = True


def search(evidence: Evidence) -> Match | None:
    """Ask for the truth with one input's value put in place of another's."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong or any(evidence.unmoved(p) for p in wrong):
        return None
    inputs, chosen = evidence.subject.inputs, evidence.problem.chosen
    for i in chosen:
        for j in chosen:
            if i == j or inputs[i].shape != inputs[j].shape:
                continue
            replaced = tuple(inputs[j].astype(x.dtype) if k == i else x for k, x in enumerate(inputs))
            if evidence.is_truth_at(replaced):
                a, b = evidence.subject.names[i], evidence.subject.names[j]
                names = listed([evidence.name(p) for p in wrong])
                return Match(
                    SLUG,
                    f"the gradient of {names} is right when `{b}` is put in place of `{a}`",
                    f"use `{a}` where the gradient of {names} uses `{b}`",
                    names,
                )
    return negated(evidence)


def negated(evidence: Evidence) -> Match | None:
    """Ask for the truth with one input's sign turned."""
    wrong, inputs = evidence.wrong_inputs, evidence.subject.inputs
    for i in evidence.problem.chosen:
        turned = tuple(-x if k == i else x for k, x in enumerate(inputs))
        if evidence.is_truth_at(turned):
            name = evidence.subject.names[i]
            names = listed([evidence.name(p) for p in wrong])
            return Match(
                SLUG,
                f"the gradient of {names} is right when evaluated at minus `{name}`",
                f"turn the sign of `{name}` inside the gradient",
                names,
            )
    return None
