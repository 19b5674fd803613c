"""Operations that a framework has in one piece: what a ready rule runs there instead of its formula.

Such an operation computes what the formula does, keeps no more, and is faster. It may decline:
where somebody records it, the formula is differentiated, which is right at every order and in both modes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


def _never(*args: Any) -> None:
    """Offer nothing."""


class Fused(NamedTuple):
    """An operation, of tensors and options, and its pullback, which takes the cotangent before them."""

    value: Callable[..., Any]
    pull: Callable[..., Any]  # both give None where the formula must do it
    # What runs the operation with no rule around it, where the host's own derivatives are as right at every
    # order and keep as little, or a few statistics more. Given the arguments of a call: a function of those
    # of any call of such shapes and dtypes, which may decline by None; or None where there is none.
    own: Callable[..., Any] = _never
