"""A table of wrong rules with the causes that name them, and of right rules, for one framework."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Entry:
    name: str
    function: object
    at: tuple
    causes: frozenset = frozenset()


@dataclass
class Table:
    """Rules written with a framework's own decorators. `tensor` makes a tensor of an array."""

    tensor: object
    wrong_ones: dict = field(default_factory=dict)
    right_ones: dict = field(default_factory=dict)

    def wrong(self, name, function, *at, cause):
        assert name not in self.wrong_ones, name
        causes = frozenset([cause] if isinstance(cause, str) else cause)
        self.wrong_ones[name] = Entry(name, function, at, causes)

    def right(self, name, function, *at):
        assert name not in self.right_ones, name
        self.right_ones[name] = Entry(name, function, at)

    def normal(self, *shape, seed=0):
        return self.tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))

    def positive(self, *shape, seed=0):
        return self.tensor(np.random.default_rng(seed).uniform(0.3, 2.0, size=shape).astype("float32"))

    def complexes(self, *shape, seed=0):
        rng = np.random.default_rng(seed)
        return self.tensor((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("complex64"))
