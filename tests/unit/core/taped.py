"""A framework of forty lines: arrays of NumPy that remember how they were computed."""

import numpy as np

__version__ = "1.0"


class Taped:
    """An array, and what takes a cotangent of it further back."""

    def __init__(self, value, parents=(), pull=None):
        self.value = np.asarray(value)
        self.parents = parents
        self.pull = pull

    def __add__(self, other):
        return Taped(self.value + _value(other), [self], lambda dy: [dy])

    def __mul__(self, other):
        if not isinstance(other, Taped):
            return Taped(self.value * other, [self], lambda dy: [dy * other])
        return Taped(self.value * other.value, [self, other], lambda dy: [dy * other.value, dy * self.value])


def _value(x):
    return x.value if isinstance(x, Taped) else x


def exp(x):
    y = np.exp(x.value)
    return Taped(y, [x], lambda dy: [dy * y])


def gradient(y, x, dy=1.0):
    """Go back through everything that `y` was computed from."""
    if y is x:
        return np.broadcast_to(dy, x.value.shape)
    given = y.pull(dy) if y.pull else []
    return sum(gradient(parent, x, part) for parent, part in zip(y.parents, given) if part is not None)
