"""The second run of a body, held to what the first one kept.

A pullback that somebody records runs the body again, for the sake of its derivative. Its value must still be
that of what was kept: so each tensor that the new `grad` keeps is compared with the one that the old `grad`
kept, and a node is put in its place that has the old value and the new history. If they differ, something
that the body reads was changed meanwhile, and there is no right answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pullback.hosts import refusals
from pullback.hosts.operation import Cotangents, Operation, Pullback
from pullback.hosts.torch import private
from pullback.hosts.torch.residuals import first, parts
from pullback.patched import patched

_NUMBERS = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device)


def pull(
    operation: Operation,
    kept: Pullback,
    again: Pullback,
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    variables: Sequence[Any],
) -> Cotangents:
    """Pull cotangents back by a second run: the values are those of the first."""
    if kept.grad is not None and again.grad is not None:
        body = operation.plan.rule.function
        saved, rest, _ = parts(kept.grad, inputs, body)
        made, others, rebuild = parts(again.grad, inputs, body)
        if len(saved) != len(made) or len(rest) != len(others) or not all(map(_same, saved, made)):
            raise refusals.changed_since(operation)
        if rebuild is not None:
            again = again.made_of(inputs, rebuild(list(map(_pin, saved, made))))
        told = [_tells(old, new) for old, new in zip(rest, others)]
        if False in told:
            raise refusals.changed_since(operation)
        if None not in told:
            return again(cotangents, variables)
    # The two hold something that cannot be compared: what they give is compared in its place.
    got = again(cotangents, variables)
    with torch.no_grad():
        want = kept(cotangents, variables)
    return Cotangents(
        _pinned(operation, want.inputs, got.inputs),
        _pinned(operation, want.variables, got.variables),
        got.second,
    )


class Noted:
    """What the first run of a call kept, for a transform whose pullback runs the body again."""

    def __init__(self) -> None:
        self._kept: tuple[list[tuple[Any, int]], list[Any]] | None = None

    @contextlib.contextmanager
    def of(self, operation: Operation) -> Iterator[None]:
        """Listen to the run of an operation."""
        with patched(first, notes=[]):
            yield
            for call, tensors, rest in first.notes or ():
                if call is operation:
                    self._kept = [(tensor, tensor._version) for tensor in tensors], rest

    def require(self, operation: Operation, again: Pullback, inputs: Sequence[Any]) -> None:
        """Refuse a second run that keeps something else."""
        if self._kept is None or again.grad is None:
            return
        (saved, rest) = self._kept
        made, others, _ = parts(again.grad, inputs, operation.plan.rule.function)
        made = made[len(inputs) :]
        same = len(saved) == len(made) and len(rest) == len(others)
        same = same and all(tensor._version == version for tensor, version in saved)
        same = same and all(_same(old, private.ungraded(new)) for (old, _), new in zip(saved, made))
        if not same or any(_tells(old, new) is False for old, new in zip(rest, others)):
            raise refusals.changed_since(operation, "its gradient")


def _pinned(operation: Operation, kept: Sequence[Any], again: Sequence[Any]) -> list[Any]:
    for old, new in zip(kept, again):
        if (old is None) != (new is None) or (old is not None and not _same(old, new)):
            raise refusals.changed_since(operation)
    return [new if new is None else _pin(old, new) for old, new in zip(kept, again)]


def _tells(old: Any, new: Any) -> bool | None:
    """Tell whether two things that are no tensors are the same; None where that cannot be told."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, _NUMBERS):
        return bool(old == new or (old != old and new != new))
    if type(old) in (tuple, list) and len(old) == len(new):
        told = list(map(_tells, old, new))
        return False if False in told else None if None in told else True
    return None


def _same(old: Any, new: Any) -> bool:
    """Tell whether two tensors agree: to half the digits, for a sum may be taken in another order."""
    if old is new:
        return True
    if old.shape != new.shape or old.dtype != new.dtype or old.device != new.device:
        return False
    if not (private.has_values(old) and private.has_values(new)):
        return True
    with private.left(), torch.no_grad():
        if not (old.dtype.is_floating_point or old.dtype.is_complex):
            return torch.equal(old, new)
        size = old.abs()
        size = size[size.isfinite()]
        near = torch.finfo(old.dtype).eps ** 0.5
        scale = float(size.max()) if size.numel() else 0.0
        return torch.allclose(old, new, rtol=near, atol=near * scale, equal_nan=True)


def _pin(old: Any, new: Any) -> Any:
    """Give the old value and the new history."""
    if old is new or private.is_wrapped(old) or private.is_wrapped(new):
        return new
    return _pinning([old], new) if new.requires_grad else old


class Pinned(private.SingleLevelFunction):
    """The node of a tensor that the second run has made, with the value of the first."""

    @staticmethod
    def forward(ctx: Any, kept: list[Any], again: Any) -> Any:
        return kept[0].detach()

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        return None, cotangent


_pinning: Any = Pinned.apply  # type: ignore[attr-defined]  # of its base, which PyTorch does not type
