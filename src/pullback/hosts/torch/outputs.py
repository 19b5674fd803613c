"""Making the outputs of a body its own: no tensor older than the call, and none that stands twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def fresh(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Copy the outputs that have a history already, or stand twice in the call.

    PyTorch writes the history into the tensor itself: a cached tensor or one output returned twice would be
    taken for the result of two operations. An input that is returned as it is becomes a view by itself, and
    changing that in place is an error.
    """
    if len(outputs) == 1 and not outputs[0].requires_grad:
        return list(outputs)
    seen: list[Any] = []
    for output in outputs:
        if any(output is other for other in seen):
            output = output.clone()
        elif output.requires_grad and not any(output is x for x in inputs):
            output = output.detach()
        seen.append(output)
    return seen


def apart(outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Copy the outputs that are inputs, or stand twice: for transforms, which cannot tell them apart."""
    made: list[Any] = []
    for output in outputs:
        known = any(output is other for other in (*inputs, *made))
        made.append(output.clone() if known else output)
    return made


def mark_rigid(ctx: Any, outputs: Sequence[Any]) -> None:
    """Tell PyTorch which outputs no gradient can flow through."""
    rigid = [y for y in outputs if not (y.dtype.is_floating_point or y.dtype.is_complex)]
    if rigid:
        ctx.mark_non_differentiable(*rigid)
