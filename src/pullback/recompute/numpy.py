"""Values, and no gradients: there is nothing to run again."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.hosts.operation import Tensor
from pullback.plan import Plan
from pullback.recompute.chain import Chain
from pullback.recompute.framework import Body, Framework, Tensors, unrolled


class NumPy(Framework):
    """Call functions as they are."""

    def checkpoint(self, plan: Plan, tensors: list[Tensor], *, looped: bool = False) -> Any:
        args, kwargs = plan.arguments(tensors)
        return plan.rule.body(*args, **kwargs)

    def scan(self, body: Body, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
        return unrolled(body, carry, xs, length, np.stack)

    def reversible(self, plan: Plan, chain: Chain, tensors: Tensors) -> Tensors:
        return list(chain.run(*tensors))

    def split(self, x: Tensor, sizes: list[int]) -> Tensors:
        return list(np.split(x, np.cumsum(sizes)[:-1]))


FRAMEWORK = NumPy()
