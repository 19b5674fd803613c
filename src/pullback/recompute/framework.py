"""What a recomputed function asks of a framework, and which framework is asked.

A framework is one file beside this one, with a `FRAMEWORK` in it, by the name of its module.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from pullback import hosts
from pullback.hosts.base import Host
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.operation import Tensor
from pullback.plan import Plan
from pullback.recompute.chain import Chain

Tensors = list[Tensor]
Body = Callable[[Tensors, Tensors], "tuple[Tensors, Tensors]"]


class Framework(ABC):
    """Run functions again in the backward pass of one framework."""

    @abstractmethod
    def checkpoint(self, plan: Plan, tensors: list[Tensor], *, looped: bool = False) -> Any:
        """Carry out a call, keep its inputs alone, and run it again for its gradient.

        One that is looped stands in a loop: no compiler can take its second run for the first.
        """

    @abstractmethod
    def scan(self, body: Body, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
        """Run a body over the first axis of `xs`, as one loop: the last carry, and the stacked outputs."""

    @abstractmethod
    def reversible(self, plan: Plan, chain: Chain, tensors: Tensors) -> Tensors:
        """Run a chain of half-steps, keep its ends alone, and undo it for its gradient."""

    @abstractmethod
    def split(self, x: Tensor, sizes: list[int]) -> Tensors:
        """Split a tensor along its first axis, so that its gradient is put together in one go."""


def unrolled(
    body: Body, carry: Tensors, xs: Tensors, length: int, stack: Callable[[Tensors], Tensor]
) -> tuple[Tensors, Tensors]:
    """Run a loop step by step."""
    rows = []
    for i in range(length):
        carry, ys = body(carry, [x[i] for x in xs])
        rows.append(ys)
    return carry, [stack(list(column)) for column in zip(*rows)]


@functools.cache
def of(host: Host) -> Framework:
    """Find the framework of a call by its host."""
    module = hosts.part("recompute", "numpy" if host is NUMPY else hosts.framework_of(host))
    if module is None:
        raise host.refused("checkpoint")
    found: Framework = module.FRAMEWORK
    return found
