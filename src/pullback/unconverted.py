"""Functions that AutoGraph leaves as they are, where TensorFlow builds a graph.

It would read and convert the source of the library, for nothing: that takes tens of milliseconds a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def unconverted(function: F) -> F:
    """Mark a function as one that needs no conversion; TensorFlow is not asked for it."""
    vars(function)["autograph_info__"] = {}
    return function
