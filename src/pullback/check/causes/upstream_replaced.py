"""The upstream gradient is replaced: by its sum, its mean, its transpose, a shifted or reversed copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pullback.check.cause import Match, listed
from pullback.check.evidence import Evidence
from pullback.check.subject import Array

SLUG = "upstream-replaced"
RANK = 57
CONFIRM = True


def transforms(shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """List what people put in place of `dy`."""
    axes = list(range(len(shape)))
    for axis in axes:
        if shape[axis] < 2:
            continue
        yield f"summed over axis {axis}", lambda v, a=axis: np.broadcast_to(v.sum(a, keepdims=True), v.shape)  # type: ignore[misc]
        yield f"averaged over axis {axis}", lambda v, a=axis: np.broadcast_to(v.mean(a, keepdims=True), v.shape)  # type: ignore[misc]
        yield f"reversed along axis {axis}", lambda v, a=axis: np.flip(v, a)  # type: ignore[misc]
        for k in (1, -1):
            yield f"shifted by {k} along axis {axis}", lambda v, a=axis, k=k: np.roll(v, k, a)  # type: ignore[misc]
        yield (
            f"taken from the first entry along axis {axis}",
            lambda v, a=axis: np.broadcast_to(np.take(v, [0], a), v.shape),  # type: ignore[misc]
        )
    if len(axes) > 1:
        yield "summed over everything", lambda v: np.full(v.shape, v.sum())
        yield "averaged over everything", lambda v: np.full(v.shape, v.mean())
        if shape[-1] == shape[-2]:
            yield "transposed", lambda v: np.swapaxes(v, -1, -2)
    yield "in absolute value", np.abs


def search(evidence: Evidence) -> Match | None:
    """Look for a replaced `dy` under which the truth equals the claim."""
    shapes = evidence.problem.codomain.shapes
    if evidence.true is None or len(shapes) != 1 or not evidence.wrong_inputs or evidence.vs[0].size != np.prod(shapes[0]):
        return None
    for how, change in transforms(shapes[0]):
        guess = [
            evidence.true_at(evidence.subject.inputs, np.array(change(v.reshape(shapes[0]))).reshape(-1))
            for v in evidence.vs
        ]
        if all(evidence.explains(guess, p) for p in evidence.wrong_inputs):
            names = listed([evidence.name(p) for p in evidence.wrong_inputs])
            return Match(
                SLUG, f"the gradient of {names} is right for another upstream: `dy` {how}",
                "use `dy` itself, entry by entry", names,
            )
    return None
