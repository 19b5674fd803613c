"""The upstream gradient is replaced: by its sum, its mean, its transpose, a shifted or reversed copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "upstream-replaced"
RANK = 57
CONFIRM = True


def transforms(shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """List what people put in place of `dy`."""
    for axis in (a for a, d in enumerate(shape) if d > 1):
        yield f"summed over axis {axis}", partial(_spread, np.sum, axis)
        yield f"averaged over axis {axis}", partial(_spread, np.mean, axis)
        yield f"taken from the first entry along axis {axis}", partial(_spread, _first, axis)
        yield f"reversed along axis {axis}", partial(np.flip, axis=axis)
        yield f"shifted by 1 along axis {axis}", partial(np.roll, shift=1, axis=axis)
        yield f"shifted by -1 along axis {axis}", partial(np.roll, shift=-1, axis=axis)
    if len(shape) > 1:
        yield "summed over everything", partial(_spread, np.sum, None)
        yield "averaged over everything", partial(_spread, np.mean, None)
        if shape[-1] == shape[-2]:
            yield "transposed", partial(np.swapaxes, axis1=-1, axis2=-2)
    yield "in absolute value", np.abs


def _spread(reduce: Callable[..., Any], axis: int | None, v: Array) -> Array:
    return np.broadcast_to(reduce(v, axis=axis, keepdims=True), v.shape)


def _first(v: Array, axis: int, keepdims: bool) -> Array:
    return np.take(v, [0], axis)


def search(evidence: Evidence) -> Match | None:
    """Look for a replaced `dy` under which the truth equals the claim."""
    shapes = evidence.problem.codomain.shapes
    if (
        evidence.true is None
        or len(shapes) != 1
        or not evidence.wrong_inputs
        or evidence.vs[0].size != np.prod(shapes[0])
    ):
        return None
    for how, change in transforms(shapes[0]):

        def guess(v: Array, change: Callable[[Array], Array] = change) -> Array | None:
            other = np.array(change(v.reshape(shapes[0]))).reshape(-1)
            return evidence.true_at(evidence.subject.inputs, other)

        if evidence.explains(guess):
            names = listed([evidence.name(p) for p in evidence.wrong_inputs])
            return Match(
                SLUG,
                f"the gradient of {names} is right for another upstream: `dy` {how}",
                "use `dy` itself, entry by entry",
                names,
            )
    return None
