"""The gradients of two inputs are exchanged, or one input's value is used for another's."""

from __future__ import annotations

from pullback.checker.cause import Match
from pullback.checker.evidence import Evidence
from pullback.view.subject import Arrays

SLUG = "inputs-swapped"
RANK = 60
CONFIRM = True


def exchanged(evidence: Evidence, i: int, j: int) -> Arrays:
    """Give the inputs with two values exchanged."""
    a, b = evidence.problem.chosen[i], evidence.problem.chosen[j]
    inputs = list(evidence.subject.inputs)
    inputs[a], inputs[b] = inputs[b].astype(inputs[a].dtype), inputs[a].astype(inputs[b].dtype)
    return tuple(inputs)


def search(evidence: Evidence) -> Match | None:
    """Try each pair of inputs of one shape."""
    true, wrong = evidence.true, evidence.wrong_inputs
    if true is None or not wrong:
        return None
    shapes = evidence.problem.domain.shapes
    for i in range(evidence.count):
        for j in range(i + 1, evidence.count):
            if shapes[i] != shapes[j] or not set(wrong) <= {i, j}:
                continue
            a, b = evidence.name(i), evidence.name(j)
            pair = [(i, j), (j, i)]
            if all(
                evidence.close(evidence.part(c, p), evidence.part(t, q), 10)
                for p, q in pair
                for c, t in zip(evidence.claimed, true)
            ):
                return Match(
                    SLUG,
                    f"the gradients of `{a}` and `{b}` are exchanged",
                    f"return the gradient of `{a}` first, then that of `{b}`",
                )
            for p, q in pair:
                if wrong == [p] and all(
                    evidence.close(evidence.part(c, p), evidence.part(t, q), 10)
                    for c, t in zip(evidence.claimed, true)
                ):
                    return Match(
                        SLUG,
                        f"the gradient of `{evidence.name(p)}` is that of `{evidence.name(q)}`",
                        f"return the gradient of `{evidence.name(p)}` in its place",
                    )
            if any(evidence.unmoved(p) for p in wrong):
                continue
            values = exchanged(evidence, i, j)
            if evidence.is_truth_at(values):
                return Match(
                    SLUG,
                    f"the gradient is right with the values of `{a}` and `{b}` exchanged",
                    f"exchange `{a}` and `{b}` inside the gradient",
                )
    return None
