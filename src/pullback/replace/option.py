"""Options of replacements: numbers in a range, words of a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.errors import ForwardModeError, OptionError


def require_number(verb: str, name: str, value: Any, *, least: float, fix: str, above: bool = False) -> None:
    """Refuse a Python number below the least; a tensor is taken at its word."""
    if isinstance(value, (int, float)) and not (value > least if above else value >= least):
        raise OptionError.about(
            verb,
            found=f"{name}={value!r}",
            expected=f"a number {'greater than' if above else 'not less than'} {least:g}",
            fix=fix,
        )


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


def forward_refused(verb: str) -> ForwardModeError:
    """Say that forward mode has no meaning for what is done to a cotangent."""
    error: ForwardModeError = ForwardModeError.about(
        verb,
        found="forward mode was asked for",
        expected="reverse mode: what it does to a gradient is not linear",
        why="the transpose of a map that is not linear is a wrong number",
        fix=f"leave `{verb}` out where tangents are pushed forward",
    )
    return error
