"""Foreign functions for the tests: they remember how they were called."""

import numpy as np

from pullback.hosts.foreign import register
from pullback.hosts.specs import Spec


class Recorded:
    """Run a NumPy function, and keep what it was given."""

    def __init__(self, function, name="simulate"):
        self.function = function
        self.name = name
        self.where = f"{name} (model.py:12)"
        self.token = register(self)
        self.calls = []
        self.batches = []

    def __call__(self, arrays):
        self.calls.append(list(arrays))
        return self.function(*arrays)

    def batch(self, arrays, mapped):
        self.batches.append((list(arrays), list(mapped)))
        (length,) = {len(array) for array, here in zip(arrays, mapped) if here}
        runs = [
            self.function(*(array[i] if here else array for array, here in zip(arrays, mapped)))
            for i in range(length)
        ]
        return [np.stack(parts) for parts in zip(*runs)]


def floats(*shape, dtype="float32"):
    """Describe a floating output."""
    return Spec(shape, dtype, "floating")


def mixed(x, y):
    """Compute something that tells its arguments apart."""
    return [np.asarray(2 * x + y.sum(), x.dtype)]


def failing(x):
    """Fail in a line that a traceback must show."""
    raise KeyError("the solver diverged")
