"""The subject: one differentiable function as the checker sees it.

Every callable takes and gives NumPy arrays; an adapter builds it, the checker
only reads it. Inputs and outputs are flat tuples: what was nested, static or missing is kept by the
host's closure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from pullback.domain import Domain, Limits
from pullback.rule import EXACT, Intent
from pullback.view.words import Words

Array: TypeAlias = "np.ndarray[Any, Any]"
Arrays: TypeAlias = tuple[Array, ...]
Cotangents: TypeAlias = "tuple[Array | None, ...]"
Forward: TypeAlias = Callable[[Arrays], Arrays]
Pullback: TypeAlias = Callable[[Arrays, Arrays], Cotangents]
Jacobian: TypeAlias = Callable[[Arrays], "tuple[Cotangents, ...]"]


@dataclass
class Counter:
    """Count what a check costs; `look` is asked before each evaluation whether it may go on."""

    forwards: int = 0
    pullbacks: int = 0
    look: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class KnownAs:
    """Say how a declaration names a rule: by its qualified name, its maker, and the name in its module."""

    qualified: str = ""
    kind: str = ""
    name: str = ""


@dataclass(frozen=True)
class Opened:
    """Hold a rule that was run forward by hand: its gradient, and what it is handed."""

    grad: Callable[..., Any]
    given: tuple[Any, ...]
    call: Callable[[Callable[..., Any]], Any]  # a function in the place of the gradient ↦ what it returns
    lay: Callable[[Any], list[Any]]  # what is returned ↦ one tensor, or None, per input
    array: Callable[[Any], Array]


@dataclass(frozen=True)
class Subject:
    """Hold one function, its example inputs and every way to differentiate it."""

    name: str
    inputs: Arrays
    names: tuple[str, ...]
    differentiable: tuple[bool, ...]
    forward: Forward
    pullback: Pullback
    # The function that the pullback claims to differentiate, when it is not `forward` (intent `like`).
    target: Forward | None = None
    # The slopes that are declared where the derivative is a choice, NaN elsewhere.
    chosen: Forward | None = None
    body_forward: Forward | None = None
    # The function as it runs where somebody differentiates it, if a rule of the host says that apart.
    differentiated: Forward | None = None
    # The function as it runs while a host records it, where it may choose another program for that.
    recorded: Forward | None = None
    body_pullback: Pullback | None = None
    direct_pullback: Pullback | None = None
    # The rule run forward by hand, and its gradient left to be called.
    opened: Callable[[Arrays, Arrays], Opened] | None = None
    # The same for a pushforward beside the gradient: what is opened is its transpose.
    pushed: Callable[[Arrays, Arrays], Opened] | None = None
    # The callable made of other functions in the places of those that a user wrote.
    remade: Callable[[Mapping[Any, Any]], Any] = lambda parts: None
    # The pullback run on the very arrays it is given and not on copies: what it changes is seen in them.
    sharing_pullback: Pullback | None = None
    second: Callable[[Arrays, Arrays, Cotangents], tuple[Cotangents, Cotangents]] | None = None
    pushforward: Callable[[Arrays, Arrays], Cotangents] | None = None
    jacobian: Jacobian | None = None
    body_jacobian: Jacobian | None = None
    variants: Mapping[str, tuple[Forward, Pullback]] = field(default_factory=dict)
    slow: frozenset[str] = frozenset()  # the variants that take seconds to compile
    exports: Callable[[], bool] | None = None
    # A block in which the host runs the operations of a function one by one, and compiles nothing.
    by_steps: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    # Tells whether the gradient runs through code that the host cannot see into.
    opaque: Callable[[], bool] | None = None
    # Gives, by operation, what is zero where an operation inside switches.
    switches: Callable[[Arrays], list[tuple[str, Array]]] | None = None
    # Counts how often the operation runs that the function repeats most, as the steps of a loop do.
    repeats: Callable[[Arrays], int] | None = None
    explicit: Callable[[], bool] | None = None  # tells whether the rule says its own second order
    astype: Callable[..., Subject | None] | None = None
    intent: Intent = EXACT
    # The intent is that of gradients inside: `body_pullback` has them, and is the other thing it may be.
    believes: bool = False
    order: int | None = None
    domain: Domain | None = None  # where the function means something
    limits: Limits | None = None  # … as bounds of every input, once the check has begun
    inside: Callable[[Arrays], bool] | None = None  # … and the question itself
    declared: str = ""  # where the intent was declared, if it was not the rule itself that states it
    known_as: KnownAs = field(default_factory=KnownAs)
    accuracy: float | None = None  # that the gradient claims to have; None: all digits
    is_rule: bool = False
    # A function of the host itself: nobody who checks it can mend it.
    is_builtin: bool = False
    draws: bool = False  # it draws random numbers of the host's
    forward_mode_claimed: bool = False
    pushes: bool = False  # it has a pushforward of its own, beside the gradient
    mends_shapes: bool = False  # the host puts a cotangent of a wrong shape right in silence
    captured: tuple[str, ...] = ()
    source: str = ""
    text: Callable[[], tuple[str, str]] = lambda: ("", "")  # what the user wrote, and its docstring
    # Writes the lines that import it, and the types of its arguments, where any do.
    imports: Callable[[], tuple[str, ...]] = tuple
    # The outputs that are not judged: the rule gives no gradient by them, and a program asked for none.
    unasked: tuple[str, ...] = ()
    words: Words = field(default_factory=Words)
    # The inputs that belong to the callable itself (weights): the last ones, as the host names them.
    parameters: tuple[str, ...] = ()
    # Writes the call as code, with these names in the places of the inputs.
    call: Callable[[Sequence[str]], str] | None = None
    counter: Counter = field(default_factory=Counter)

    def at(self, inputs: Arrays) -> Subject:
        """Move the subject to other inputs."""
        return replace(self, inputs=tuple(inputs))

    def written(self, names: Sequence[str]) -> str:
        """Write the call as code."""
        return f"{self.name}({', '.join(names)})" if self.call is None else self.call(names)

    @property
    def oracle_forward(self) -> Forward:
        """Give the function whose derivative is claimed."""
        return self.target or self.forward


def counted(subject: Subject) -> Subject:
    """Wrap the forwards and pullbacks of a subject so that its counter sees them."""
    counter = subject.counter

    def forward(inputs: Arrays) -> Arrays:
        counter.look()
        counter.forwards += 1
        return subject.forward(inputs)

    def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
        counter.look()
        counter.pullbacks += 1
        return subject.pullback(inputs, cotangents)

    return replace(subject, forward=forward, pullback=pullback)
