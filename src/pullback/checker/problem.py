"""One equation to test: a forward and a claimed pullback around one point, as real vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pullback.checker.space import Space, roundoff
from pullback.domain import Limits
from pullback.dtypes import is_complex
from pullback.view.subject import Array, Arrays, Cotangents, Forward, Pullback, Subject


class ShapeMismatchError(Exception):
    """The pullback gave arrays of other shapes than the inputs have: a matter of contract, not of numbers."""


@dataclass
class Problem:
    """Pack a subject around its inputs."""

    forward: Forward
    pullback: Pullback
    inputs: Arrays
    differentiable: tuple[bool, ...]
    # Inputs whose gradient is None on purpose: they are not moved.
    silent: set[int] = field(default_factory=set)
    limits: Limits | None = None  # of every input, where the function has a domain
    inside: Callable[[Arrays], bool] | None = None

    def __post_init__(self) -> None:
        self.chosen = [k for k, yes in enumerate(self.differentiable) if yes]
        self.domain = Space.of([self.inputs[k] for k in self.chosen])
        self.x = self.domain.pack([self.inputs[k] for k in self.chosen])
        self.low: Array | None = None
        self.high: Array | None = None
        if self.limits is not None:
            bounds = [
                (-np.inf, np.inf) if is_complex(self.inputs[k].dtype) else self.limits[k] for k in self.chosen
            ]
            sizes = self.domain.sizes
            self.low, self.high = (np.repeat([pair[i] for pair in bounds], sizes) for i in (0, 1))
        outputs = self.forward(self.inputs)
        self.codomain = Space.of(outputs)
        self.y = self.codomain.pack(outputs)
        self.unit = max(roundoff([self.inputs[k] for k in self.chosen]), roundoff(outputs))

    @classmethod
    def of(cls, subject: Subject) -> Problem:
        """Ask whether the subject's pullback is the derivative it claims to be."""
        return cls(
            subject.oracle_forward,
            subject.pullback,
            subject.inputs,
            subject.differentiable,
            limits=subject.limits,
            inside=subject.inside,
        )

    def with_x(self, vector: Array) -> Arrays:
        """Give all inputs, with the differentiable ones taken from a vector."""
        moved = list(self.inputs)
        for k, array in zip(self.chosen, self.domain.unpack(vector)):
            moved[k] = array
        return tuple(moved)

    def evaluate(self, vector: Array) -> tuple[Array, Array]:
        """Give the rounded point and the outputs there, NaN where the function does not exist."""
        moved = self.with_x(vector)
        reached = self.domain.pack([moved[k] for k in self.chosen])
        try:
            outputs = self.forward(moved)
        except Exception:  # a user's function may refuse a point in any way it likes
            return reached, np.full_like(self.y, np.nan)
        if tuple(o.shape for o in outputs) != self.codomain.shapes:
            return reached, np.full_like(self.y, np.nan)
        return reached, self.codomain.pack(outputs)

    def gradient(self, v: Array, vector: Array | None = None) -> Array:
        """Give the claimed gradient of ⟨v, f⟩ as a vector."""
        inputs = self.inputs if vector is None else self.with_x(vector)
        claimed = self.pullback(inputs, self.codomain.unpack(v))
        self.silent.update(k for k in self.chosen if claimed[k] is None)
        return self.packed(claimed)

    def packed(self, claimed: Cotangents) -> Array:
        """Pack cotangents of the inputs, with zeros for None."""
        parts = []
        for k, shape in zip(self.chosen, self.domain.shapes):
            part = claimed[k]
            if part is not None and part.shape != shape:
                raise ShapeMismatchError(f"input {k}: {part.shape} for {shape}")
            parts.append(part)
        return self.domain.pack(parts)

    def still(self) -> Array:
        """Mark the reals that are not to be moved."""
        mask = np.zeros(self.x.size, bool)
        for place, k in enumerate(self.chosen):
            if k in self.silent:
                mask[self.domain.part(place)] = True
        return mask
