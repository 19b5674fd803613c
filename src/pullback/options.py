"""Options that users give: numbers in a range, words of a list, functions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from pullback import hosts
from pullback.errors import DefinitionError, ForwardModeError, OptionError
from pullback.hosts import Role
from pullback.hosts.specs import broadcast_axes, show_shape


def require_number(
    verb: str,
    name: str,
    value: Any,
    *,
    least: float,
    fix: str,
    above: bool = False,
    most: float = math.inf,
) -> None:
    """Refuse a Python number out of range, and what is none; a tensor, or None, is taken at its word."""
    if hosts.role(type(value)) is Role.STATIC and not isinstance(value, (numbers.Real, type(None))):
        wrong = True
    else:
        wrong = isinstance(value, (int, float)) and not (
            (value > least if above else value >= least) and value <= most
        )
    if wrong:
        raise OptionError.about(
            verb,
            found=f"{name}={value!r}",
            expected="a number"
            + ("" if least == -math.inf else f" {'greater than' if above else 'not less than'} {least:g}")
            + ("" if most == math.inf else f", and not greater than {most:g}"),
            fix=fix,
        )


def require_factor(verb: str, name: str, value: Any, x: Any) -> None:
    """Refuse a factor that is no number, or would change the shape of what it is multiplied with."""
    if isinstance(value, (int, float)):
        return
    host = hosts.of(x)
    role = hosts.role(type(value))
    found, fix = f"{name}={value!r}"[:80], f"{name}=1.0"
    if role is host or role is Role.ARRAY:
        have, want = host.spec(value).shape, host.spec(x).shape
        if have is None or want is None or broadcast_axes(want, have) is not None:
            return
        found = f"{name} has shape {show_shape(have)}, x has shape {show_shape(want)}"
        fix = f"one number, or a tensor of shape {show_shape(want)}"
    elif isinstance(value, numbers.Real):
        return
    raise OptionError.about(
        verb,
        found=found,
        expected="a number, or a tensor whose shape broadcasts to that of x",
        fix=fix,
    )


def require_axis(verb: str, name: str, value: Any, x: Any) -> int:
    """Give an axis of x as an int; refuse what is none."""
    shape = hosts.of(x).spec(x).shape
    integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if integer and (shape is None or -len(shape) <= value < len(shape)):
        return int(value)
    expected = "a whole number"
    if shape is not None:
        axes = f"from {-len(shape)} to {len(shape) - 1}" if shape else "of an x that has axes"
        expected = f"an axis {axes}: x has shape {show_shape(shape)}"
    raise OptionError.about(verb, found=f"{name}={value!r}", expected=expected, fix=f"{name}=-1")


def require_word(verb: str, name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a word that is not in the list."""
    words = list(known)
    if value not in words:
        raise OptionError.about(
            verb,
            found=f"{name}={value!r}",
            expected=f"one of {', '.join(map(repr, words))}",
            fix=f"{name}={words[0]!r}",
        )


def require_functions(verb: str, fix: str, **given: Any) -> None:
    """Refuse something that cannot be called."""
    for name, value in given.items():
        if not callable(value):
            raise DefinitionError.about(
                verb,
                found=f"{name}={value!r}"[:80],
                expected=f"`{name}` to be a function, a layer, or anything else that can be called",
                fix=fix,
            )


def forward_refused(verb: str) -> ForwardModeError:
    """Say that forward mode has no meaning for what is done to a cotangent."""
    return ForwardModeError.about(
        verb,
        found="forward mode was asked for",
        expected="reverse mode: what it does to a gradient is not linear",
        why="the transpose of a map that is not linear is a wrong number",
        fix=f"leave `{verb}` out where tangents are pushed forward",
    )
