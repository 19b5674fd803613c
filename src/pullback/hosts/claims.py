"""What must hold of values: said at once where they are known, and by the program where it runs later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

LATER = "(a number of the running program)"


class Claim:
    """A claim about values, with the error for values of which it does not hold.

    It is a `Foreign` function too, of the answer and of the numbers that the error tells: a compiled program
    calls it to raise.
    """

    token: int  # from the host

    def __init__(self, name: str, where: str, error: Callable[..., Exception]) -> None:
        self.name = name
        self.where = where
        self._error = error

    def error(self, numbers: Sequence[Any]) -> Exception:
        """Make the error, with the numbers in words."""
        return self._error(*(f"{float(np.asarray(number)):.3g}" for number in numbers))

    def text(self, count: int) -> str:
        """Give the text of the error where its numbers are not known yet."""
        return str(self._error(*[LATER] * count))

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        holds, *numbers = arrays
        if not holds:
            raise self.error(numbers)
        return [np.asarray(True)]

    def batch(self, arrays: Sequence[Any], mapped: Sequence[bool]) -> list[Any]:
        length = next(len(array) for array, along in zip(arrays, mapped) if along)
        for i in range(length):
            self([array[i] if along else array for array, along in zip(arrays, mapped)])
        return [np.ones([length], bool)]
