"""What a recomputed function asks of a framework, and which framework is asked.

A framework is one file beside this one, with a `FRAMEWORK` in it, by the name of its module.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

from pullback import hosts
from pullback.hosts.operation import Tensor
from pullback.plan import Plan


class Framework(ABC):
    """Run functions again in the backward pass of one framework."""

    @abstractmethod
    def checkpoint(self, plan: Plan, tensors: list[Tensor], *, looped: bool = False) -> Any:
        """Carry out a call, keep its inputs alone, and run it again for its gradient.

        One that is looped stands in a loop: no compiler can take its second run for the first.
        """


@functools.cache
def framework(name: str) -> Framework:
    """Give the file of a framework that is imported."""
    found: Framework = import_module(f"pullback.recompute.{name or 'numpy'}").FRAMEWORK
    return found


def of(plan: Plan) -> Framework:
    """Find the framework of a call."""
    return framework(hosts.framework_of(plan.host))
