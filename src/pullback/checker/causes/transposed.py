"""The gradient is transposed, reversed or laid out in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "transposed"
RANK = 56
CONFIRM = True
ROUGHLY = 1e3  # how much more may be apart in sums over all entries, before each is looked at


def layouts(shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """List the layouts of one shape that keep the shape."""
    axes = tuple(range(len(shape)))
    if 2 <= len(shape) <= 4:
        for order in permutations(axes):
            if order != axes:
                same = tuple(shape[a] for a in order) == shape
                word = "transposed" if len(shape) == 2 else f"transposed to {order}"
                if same:
                    yield word, lambda g, o=order: np.transpose(g, o)  # type: ignore[misc]
                yield f"{word} and reshaped", lambda g, o=order: np.transpose(g, o).reshape(g.shape)  # type: ignore[misc]
    for axis in axes:
        if shape[axis] > 1:
            yield f"reversed along axis {axis}", lambda g, a=axis: np.flip(g, a)  # type: ignore[misc]
            for k in (1, -1):
                yield f"shifted by {k} along axis {axis}", lambda g, a=axis, k=k: np.roll(g, k, a)  # type: ignore[misc]


def _may_apply_it(evidence: Evidence, true: list[Array]) -> bool:
    """Tell whether ⟨w, claim of v⟩ is about ⟨truth for w, v⟩, as where the Jacobian is applied to `dy`.

    What is known tells: a whole Jacobian is a gradient for each output, twice.
    """
    vs, claimed, truth = (np.stack(vectors) for vectors in (evidence.vs, evidence.claimed, true))
    return evidence.close(vs @ claimed.T, truth @ vs.T, ROUGHLY)


def search(evidence: Evidence) -> Match | None:
    """Compare with every layout of the truth, and with the truth at a transposed operand."""
    true, wrong = evidence.true, evidence.wrong_inputs
    if true is None or not wrong:
        return None
    said = []
    for p in wrong:
        for how, change in layouts(evidence.problem.domain.shapes[p]):
            if all(
                evidence.close(np.ascontiguousarray(change(evidence.shaped(t, p))), evidence.shaped(c, p), 10)
                for t, c in zip(true, evidence.claimed)
            ):
                said.append(how)
                break
    names = listed([evidence.name(p) for p in wrong])
    if len(said) == len(wrong):
        return Match(
            SLUG,
            f"the gradient of {names} is {said[0]}",
            f"undo it: the gradient of {names} comes out {said[0]}",
            names,
        )
    square = evidence.problem.y.size == evidence.problem.x.size > 1
    whole = square and len(wrong) == evidence.count
    both = evidence.jacobians if whole and _may_apply_it(evidence, true) else None
    if both is not None and evidence.close(both[0].T, both[1], 10):
        return Match(
            SLUG,
            f"the gradient of {names} applies the Jacobian to `dy` instead of its transpose",
            "transpose the linear map: a scan runs the other way, a permutation is inverted, a "
            "matrix is transposed",
            names,
        )
    inputs = evidence.subject.inputs
    for k in evidence.problem.chosen:
        for axis in range(inputs[k].ndim):
            turned = tuple(
                np.ascontiguousarray(np.flip(a, axis)) if i == k else a for i, a in enumerate(inputs)
            )
            if inputs[k].shape[axis] > 1 and evidence.is_truth_at(turned):
                name = evidence.subject.names[k]
                return Match(
                    SLUG,
                    f"the gradient of {names} is right for `{name}` reversed along axis {axis}",
                    f"reverse `{name}` along axis {axis} in the gradient",
                    names,
                )
    for k, x in enumerate(inputs):
        if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
            turned = tuple(
                np.ascontiguousarray(np.swapaxes(a, -1, -2)) if i == k else a for i, a in enumerate(inputs)
            )
            if evidence.is_truth_at(turned) or (
                k not in [evidence.problem.chosen[p] for p in wrong]
                and evidence.claims_truth(partial(evidence.claimed_at, turned))
            ):
                name = evidence.subject.names[k]
                return Match(
                    SLUG,
                    f"the gradient of {names} is right for the transpose of `{name}`",
                    f"transpose `{name}` in the gradient",
                    names,
                )
    return None
