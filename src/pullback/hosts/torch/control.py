"""Loops, and what must hold, in PyTorch: a loop runs in Python, on the values inside of transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pullback.errors import HostError
from pullback.hosts.claims import Claim
from pullback.hosts.specs import Spec
from pullback.hosts.torch import callback, private

_ANSWER = Spec((), "bool", "other")


def loop(
    going: Callable[[list[Any]], Any], step: Callable[[list[Any]], list[Any]], state: list[Any]
) -> list[Any]:
    """Repeat a step while a condition holds; for a batch, as long as it does for any of its examples."""
    while True:
        more = going(state)
        inside, axes = private.peeled(more)
        if private.is_hollow(inside):
            raise HostError.about(
                "torch.compile",
                found="a loop that ends when its values say so, and values that are not known",
                expected="a number of steps that is known: a small system, solved as a dense one",
                fix='method="dense", or call it outside of the compiled function',
            )
        if not inside.any():
            return state
        moved = step(state)
        # what has ended stays as it is
        state = [torch.where(more, new, old) for new, old in zip(moved, state)] if axes else moved


def require(claim: Claim, holds: Any, numbers: Sequence[Any], values: list[Any]) -> list[Any]:
    """Give values of which a claim holds; a compiled program calls Python to ask."""
    inside, _ = private.peeled(holds)
    if not private.is_hollow(inside):
        if not inside.all():
            raise claim.error([_first(number, inside) for number in numbers])
        return values
    (fine,) = callback.callback(claim, [holds, *numbers], [_ANSWER])
    return [torch.where(fine, value, torch.full_like(value, float("nan"))) for value in values]


def _first(number: Any, holds: Any) -> Any:
    """Give the number of the first example of a batch for which a claim does not hold."""
    found = private.peeled(number)[0].detach().reshape(-1)
    return found[int(holds.reshape(-1).int().argmin()) if found.numel() == holds.numel() else 0].cpu()
