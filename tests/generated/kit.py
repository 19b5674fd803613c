"""What further shapes of generated rules are made of, and the table that they stand in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import pullback as pb

KINDS = {}
WHOLE = ("sign", "factor", "a little", "last entry", "ignored upstream", "square of upstream")
ANYWHERE = (*WHOLE, "missing term", "branch")  # where an elementwise function is inside


@dataclass(frozen=True)
class Kit:
    """Hold what a shape is made of: numbers, an elementwise function with its pullback, and the mutation."""

    rng: np.random.Generator
    dtype: str
    value: object
    pull: object
    wrong: str

    def draw(self, *shape, scale=1.0):
        """Draw numbers of both signs, away from zero."""
        sign, size = self.rng.choice([-1.0, 1.0], shape), self.rng.uniform(0.2, 1.6, shape)
        return np.asarray(scale * sign * size).astype(self.dtype)

    def positive(self, *shape):
        """Draw numbers above zero."""
        return np.abs(self.draw(*shape))

    def length(self):
        """Draw the length of an axis."""
        return int(self.rng.integers(2, 5))

    def start(self, dy):
        """Change the upstream gradient."""
        if self.wrong == "ignored upstream":
            return 0 * dy + 1
        return dy * dy if self.wrong == "square of upstream" else dy

    def end(self, dx):
        """Change the gradient of the first input."""
        if self.wrong == "last entry" and dx.shape:
            xp = pb.namespace(dx)
            flat = xp.reshape(dx, (-1,))
            return xp.reshape(xp.concat([flat[:-1], 2 * flat[-1:]]), dx.shape)
        return {"sign": -1, "factor": 1.5, "a little": 1.01}.get(self.wrong, 1) * dx


def kind(name, *own, anywhere=ANYWHERE):
    """Enter a shape, with the mutations that it alone can have and those that every shape has."""

    def enter(made):
        KINDS[name] = (made, (*own, *anywhere))
        return made

    return enter
