"""What every host refuses, in the same words.

A host finds out, in its own way, that a derivative does not exist; what it then says is said here. Only the
names of its own functions are the host's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.errors import (
    CapturedTensorError,
    CotangentCountError,
    DerivativeError,
    ForwardModeError,
    OptionError,
    OverrideError,
    SecondOrderError,
    UnsupportedInputError,
    VectorConditionError,
)
from pullback.hosts import names
from pullback.hosts.operation import Derived, Operation

_WORDS = {"O": "Python objects", "S": "bytes", "U": "strings", "M": "dates", "m": "times"}


def no_numbers(array: Any) -> str:
    """Say what an array of NumPy's holds, if it is nothing that a framework has numbers for."""
    dtype = array.dtype
    # some have more digits than any framework
    return dtype.name if dtype.char in "gG" else "records" if dtype.names else _WORDS.get(dtype.kind, "")


def require_numbers(value: Any, where: str, argument: str, *, strings: bool = False) -> None:
    """Refuse an array that no framework can hold, among the arguments or the outputs of a rule."""
    held = no_numbers(value) if isinstance(value, np.ndarray | np.generic) else ""
    if held and not (strings and held in ("bytes", "strings")):
        given = argument.isidentifier()
        raise UnsupportedInputError.about(
            where,
            found=f"{f'`{argument}`' if given else argument} is an array of {held}",
            expected="numbers, of a dtype that frameworks have",
            fix="convert it to numbers, or "
            + ("pass" if given else "return")
            + " it as something that is no array, such as a tuple",
        )


def counter(given: Any, expected: str, fix: str) -> OptionError:
    """Say that what `finite_gradient` should count with holds no number that can be added to."""
    return OptionError.about(
        "finite_gradient",
        found=f"counter is a {type(given).__name__}",
        expected=expected,
        why="the number of values that were replaced is added to it",
        fix=f"counter={fix}",
    )


class Named(NamedTuple):
    """What is said of an operation, for somebody who must not keep it: it reaches whatever its body does."""

    name: str
    where: str
    order: int | None
    last_order: tuple[str, str] | None  # its own words for a missing second derivative
    own: bool  # whether it is a rule that the user defined


def named(operation: Operation) -> Named:
    """Take down what is said of an operation."""
    last_order = getattr(operation, "last_order", None)
    return Named(operation.name, operation.where, operation.order, last_order, _is_own(operation))


def _is_own(operation: Operation | Named) -> bool:
    """Tell whether a rule takes a pushforward: a replacement is made of functions without one."""
    if isinstance(operation, Named):
        return operation.own
    if isinstance(operation, Derived):
        return False
    return not str(getattr(operation.plan.rule.function, "__module__", "")).startswith("pullback.")


def second_order(operation: Operation | Named) -> SecondOrderError:
    """Say that the rule is for first derivatives only; an operation may have words of its own for it."""
    expected, fix = getattr(operation, "last_order", None) or (
        "first derivatives only: the rule says `order=1`",
        "remove `order=1` if its second derivative can be derived, or return `dx, gradgrad` from `grad`",
    )
    return SecondOrderError.about(
        operation.where, found="a second derivative was asked for", expected=expected, fix=fix
    )


def random_body(operation: Operation, instead: str = "") -> SecondOrderError:
    """Say that a body which is run again would draw other numbers; `instead` names what does not."""
    return SecondOrderError.about(
        operation.where,
        found="the body draws random numbers, and a higher derivative runs it again",
        expected="the same numbers in both runs",
        why="the second derivative would be that of another draw",
        fix=f"draw the noise outside and pass it as an argument{instead}",
    )


def run_again(operation: Operation, does: str) -> SecondOrderError:
    """Say that a body cannot be run again, because of something that it does."""
    return SecondOrderError.about(
        operation.where,
        found=f"the body {does}, and a higher derivative runs it again",
        expected="a body that can be run twice as if it were run once",
        fix="do that outside of the rule",
    )


def changed_since(operation: Operation, asked: str = "a higher derivative") -> DerivativeError:
    """Say that a body which was run again did not keep what it had kept at first."""
    kind = SecondOrderError if asked == "a higher derivative" else DerivativeError
    return kind.about(
        operation.where,
        found=f"the body was run again for {asked}, and kept other values for `grad`",
        expected="the same values in both runs",
        why="something that the body reads was changed after the first run, "
        "and the derivative would be that of another function",
        fix="pass what changes as an argument, or differentiate before it is changed",
    )


def forward_mode(operation: Operation | Named, found: str) -> ForwardModeError:
    """Say that there is no forward mode, and what was found of the pullback."""
    own = _is_own(operation)
    name = operation.name if operation.name.isidentifier() else "f"
    return ForwardModeError.about(
        operation.where,
        found=f"forward mode was asked for, and the pullback is {found}",
        expected="a pullback that is linear in its cotangents, or a pushforward of its own"
        if own
        else "a gradient that is linear in `dy`",
        why="the transpose of a map that is not linear is a wrong number",
        fix=f"@{name}.pushforward\ndef _(dx, x):\n    return …"
        if own
        else "make it linear in `dy`, or leave it out where tangents are pushed forward",
    )


def captured_tensor(
    operation: Operation | Named, name: str, described: str, cut: str, tensor: object = None
) -> CapturedTensorError:
    """Say that a captured tensor is being differentiated.

    `described` stands for one without a name; `cut` is code of the host that cuts it off, {} for the name.
    """
    name = name or names.name_of(operation, tensor)
    shown = f"`{name}`" if name else described
    return CapturedTensorError.about(
        operation.where,
        found=f"the body uses {shown}, which is being differentiated and is not an argument",
        expected="every differentiated tensor among the arguments",
        why="a rule has no cotangent for a captured tensor: its gradient would silently be None",
        fix=f"pass {shown if name else 'it'} as an argument, or {cut.format(name or '…')} in the body",
    )


def no_operation(kind: str, why: str, expected: str, fix: str) -> OverrideError:
    """Say that what was given for a kind is none; the host says what its kinds are."""
    return OverrideError.about("override", found=f"{kind} is no operation: {why}", expected=expected, fix=fix)


def one_branch(where: str) -> CotangentCountError:
    """Say that only one branch of a condition that is traced returns something."""
    return CotangentCountError.about(
        where,
        found="an `if` on a tensor returns in one of its branches only",
        expected="a return in both: the graph has them both",
        fix="else:\n    return tf.zeros_like(dy)",
    )


def vector_condition(where: str, cond: str, select: str, every: str) -> VectorConditionError:
    """Say that a condition was asked of a whole vector; the host's own functions are named."""
    return VectorConditionError.about(
        where,
        found=f"`if`, `while` or `{cond}` was given a condition with more than one element",
        expected="one bool",
        why="a branch is taken for the whole tensor, not element by element",
        fix=f"y = {select}(condition, a, b)   # or reduce it: {every}(condition)",
    )
