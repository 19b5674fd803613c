"""Native rules: the custom gradients of a framework's own, seen by the checker and by the recorder.

Who they are is known in one file a framework, `view/<framework>/native.py`: recognised, read, called by hand,
bypassed, listened to. None of these files imports its framework before the program has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

from pullback.hosts.base import Host, Meeting, Met, meeting
from pullback.rule import EXACT
from pullback.view.definition import Definition

Given: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"  # arguments and keywords
# A gradient that is not called yet: the function, what it is handed, and how its results lie by argument.
Opening: TypeAlias = "tuple[Callable[..., Any], Sequence[Any], Callable[[Any], Any]]"
ByHand = Callable[[Sequence[Any], dict[str, Any], Sequence[Any]], Opening]
Keeps = Callable[[Met], bool]  # tells which rules stay where the others run as their bodies
Listen = Callable[[Any], contextlib.AbstractContextManager[None]]  # takes the module to listen in


class Native(Definition):
    """Describe a rule that a maker of a framework's made."""

    spelled = ""  # what is called, as code spells it; nothing where its name does not say
    pushes = False  # whether the user wrote forward mode, too, beside the gradient

    def by_hand(self) -> ByHand | None:
        """Give (args, kwargs, cotangents) ↦ its gradient, to be called; None where it cannot be called so."""
        return None

    def opened(self) -> ByHand | None:
        """Give the same, for what is not called so: a gradient made of what the user wrote, as a closure."""
        return self.by_hand()

    def remade(self, parts: Mapping[Any, Any]) -> Any:
        """Give the same rule, made of other functions in the places of these; None where it cannot be."""
        return None

    def passed_over(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """List the leaves of a call that the rule differentiates past."""
        return []


class Listener(Protocol):
    """One who is told of rules; what it asks for, in a thread of the program, may fail without harm."""

    def made(self, who: Callable[[], Definition]) -> None:
        """Be told of a definition."""

    def called(self, who: Callable[[], Definition], given: Callable[[], Given]) -> None:
        """Be told of a call, before it runs."""

    def pulled(self, who: Callable[[], Definition], given: Callable[[], Sequence[Any]]) -> None:
        """Be told that a gradient is asked for, before it runs: one cotangent an output, or None."""

    def moved(self, who: Callable[[], Definition], given: Callable[[], Sequence[bool]]) -> None:
        """Be told which tensors of a call a gradient flows to, where a framework knows before it runs."""


class Natives(Protocol):
    """What the file of a framework offers."""

    def found(self, value: Any) -> Native | None:
        """Recognise a rule that stands in a module."""

    def named(self, value: Any) -> Native | None:
        """Recognise what a user named to have it checked: a rule, or what is called in its place."""

    def written(self, function: Any) -> Any:
        """Give what the user wrote behind any callable: where its source, name and package are read."""

    def bypassed(self, keeps: Keeps | None = None) -> contextlib.AbstractContextManager[Meeting]:
        """Run rules as their plain bodies, the checker's first oracle; the list collects the rules met."""

    def listeners(self, listener: Listener) -> dict[str, Listen]:
        """Say how to listen, by the name of the module that must be there."""


# Only the calls of the checker's own thread are bypassed.
_met: ContextVar[Meeting | None] = ContextVar("met", default=None)


@contextlib.contextmanager
def collecting(host: Host, keeps: Keeps | None = None) -> Iterator[Meeting]:
    """Collect the rules met in this thread, while those of this library run as their bodies."""
    with meeting(host, keeps) as met:
        token = _met.set(met)
        try:
            yield met
        finally:
            _met.reset(token)


def is_bypassed(native: Callable[[], Native]) -> bool:
    """Tell whether a native rule that is called here runs as its body, and take note of it."""
    met = _met.get()
    if met is None:
        return False
    known = native()
    return met.passes(Met(known.name, EXACT if known.intent is None else known.intent, known))
