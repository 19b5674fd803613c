"""What a body finds around it, and must find again when it runs a second time: autocast, random numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from pullback.hosts import refusals
from pullback.hosts.operation import Operation
from pullback.hosts.torch import effects, private

_NOTHING: AbstractContextManager[None] = nullcontext()
_DEVICES = ("cpu", "cuda", "xpu", "mps")


# ── autocast ─────────────────────────────────────────────────────────────────────────────────────────────


autocasting = private.autocasting


def autocast() -> Any:
    """Take note of autocast: nothing where it is off, which is the common case."""
    if not autocasting():
        return None
    return [(d, torch.get_autocast_dtype(d)) for d in _DEVICES if torch.is_autocast_enabled(d)]


def autocast_as(noted: Any) -> AbstractContextManager[Any]:
    """Run the pullback under the autocast of the body."""
    if noted is None and not autocasting():
        return _NOTHING
    return _autocast(dict(noted or ()))


@contextlib.contextmanager
def _autocast(noted: dict[str, Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for device in _DEVICES:
            if device in noted:
                stack.enter_context(torch.autocast(device, noted[device]))
            elif torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


# ── random numbers ───────────────────────────────────────────────────────────────────────────────────────


def drawn(operation: Operation) -> Any:
    """Keep the state of the random numbers before a body that is known to draw some."""
    return states() if effects.draws(operation) else None


def states() -> list[Any]:
    """Give the states of the random numbers; none while a compiler traces, which has its own way."""
    if private.traced():
        return []
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states


def moved(before: list[Any]) -> bool:
    """Tell whether random numbers were drawn since."""
    return not all(map(torch.equal, before, states()))


def _restore(states: list[Any]) -> None:
    if states:
        torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Leave the random numbers as they were."""
    now = states()
    try:
        yield
    finally:
        _restore(now)


@contextlib.contextmanager
def drawing(before: Any) -> Iterator[None]:
    """Draw the numbers that follow a state, if there is one, and leave the random numbers as they were."""
    if before is None:
        yield
        return
    with undrawn():
        _restore(before)
        yield


@contextlib.contextmanager
def redrawn(operation: Operation, before: Any) -> Iterator[None]:
    """Let a body that runs again draw the numbers of its first run."""
    if before is not None:
        with drawing(before):
            yield
        return
    now = states()
    yield
    if moved(now):  # it was not known to draw any
        effects.remember(operation, random=True)
        raise refusals.random_body(operation)
