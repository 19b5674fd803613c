"""Rules that draw random numbers: with the numbers settled, one is a function like any other.

A mask that is drawn in the forward and kept is right; one that is drawn again in the backward is another
mask, and shows. The numbers of the program itself stay as they were.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from pullback.hosts.torch.private import TorchDispatchMode

SEED = 1


class Draws(TorchDispatchMode):
    """See whether an operation draws random numbers."""

    random = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.random = self.random or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def settled(device: Any) -> Iterator[None]:
    """Draw the same numbers each time."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng([device] if on_gpu else []):
        # `torch.manual_seed` would write down for every other device from where it was called
        torch.default_generator.manual_seed(SEED)
        if on_gpu:
            torch.cuda.manual_seed(SEED)
        yield
