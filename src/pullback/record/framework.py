"""What the recorder asks of a framework: whose a leaf is, a copy of it, and its rules.

A framework is one file beside this one, with a `FRAMEWORK` in it, by the name of its module. It imports the
framework only inside functions, which run once the program has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.record.sample import described
from pullback.view.native import Listen, Listener, Natives


class Framework(ABC):
    """Copy the tensors of a program where none of its transformations, modes and compilers can see it."""

    natives: Natives
    loggers: tuple[str, ...] = ()  # that speak while a rule is compiled, retraced, or fails on purpose
    flows_inside = False  # whether a gradient flows to the tensors that an argument holds

    def listeners(self, listener: Listener) -> dict[str, Listen]:
        """Say what is done when a module of the framework's is imported."""
        return self.natives.listeners(listener)

    @abstractmethod
    def owns(self, leaf: Any) -> bool:
        """Tell whether a leaf is a tensor of the framework, which may not be imported, or half."""

    @abstractmethod
    def spec(self, tensor: Any) -> Any:
        """Take the shape and dtype of a tensor."""

    @abstractmethod
    def copied(self, value: Any) -> Any:
        """Give the array of a value; None where there is none, and a copy of what no array can hold."""

    @abstractmethod
    def thaw(self, array: Any, device: str) -> Any:
        """Make a tensor of an array again."""

    def carried(self, tensor: Any) -> tuple[Any, list[int]]:
        """Follow the transformations around a tensor down to its value, and list the batch axes on the way.

        Gives None while a compiler traces: there is no value yet.
        """
        return tensor, []

    def trained(self, tensor: Any) -> bool:
        """Tell whether a tensor is meant to change: a variable, or one that a gradient is asked of."""
        return False

    def training(self, tensor: Any) -> Any:
        """Give a tensor as one that is meant to change: a body may ask for gradients by it."""
        return tensor

    def told(self, tensor: Any) -> str:
        """Say in words what tells a tensor from others: its shape and dtype, and the number that it is."""
        words = described(self.spec(tensor))
        if self.trained(tensor) or tuple(tensor.shape) not in ((), (1,)):
            return words
        value, axes = self.carried(tensor)
        frozen = None if value is None or axes else self.copied(value)
        return f"{words} {frozen.item()!r}" if isinstance(frozen, np.ndarray) else words

    def still(self, leaves: Sequence[Any]) -> frozenset[int]:
        """Say which leaves of a call the program asked no gradient of, where that can be seen."""
        return frozenset()

    def absent(self, cotangent: Any) -> bool:
        """Tell whether a cotangent is known to be nothing but zeros."""
        value, _ = self.carried(cotangent) if self.owns(cotangent) else (None, [])
        frozen = None if value is None else self.copied(value)
        return cotangent is None or (isinstance(frozen, np.ndarray) and not frozen.astype(bool).any())

    def packed(self, leaf: Any) -> tuple[Any, Callable[[Any], Any]] | None:
        """Give the dense tensor of numbers in a leaf that holds them sparsely, and what packs others so."""
        return None

    def operation(self, kind: str, names: Sequence[str]) -> Callable[..., Any] | None:
        """Find the function that runs an operation of a kind, as the framework names it."""
        return None

    def device(self, tensor: Any) -> str:
        """Name the place that a tensor must be put to again; nothing where it is found without."""
        return ""

    def compiles(self) -> bool:
        """Tell whether the program has loaded the framework's compiler, where that takes long to load."""
        return True

    def freeze(self, tensor: Any) -> Any:
        """Copy a tensor, or the one that transformations wrap; else take shape and dtype."""
        value, axes = self.carried(tensor)
        frozen = None if value is None else self.copied(value)
        if not isinstance(frozen, np.ndarray):
            return self.spec(tensor) if frozen is None or axes else frozen
        for axis in reversed(axes):
            frozen = np.take(frozen, 0, axis)
        return np.array(frozen)
