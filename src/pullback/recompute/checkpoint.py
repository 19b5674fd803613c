"""`checkpoint`: a function that keeps its inputs, and is run again for its gradient.

Invariant: values and gradients are those of the function, of its arguments and of whatever else it reads; the
second run draws the numbers of the first, reads the variables as they were, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.define import function_of
from pullback.hosts.operation import Tensor
from pullback.options import require_functions
from pullback.plan import Plan
from pullback.recompute import framework
from pullback.replace.graft import made_of, without_pushforward
from pullback.rule import EXACT, rule_of
from pullback.typed import P, RuleFunction, Y
from pullback.unconverted import unconverted


@unconverted
def checkpoint(f: Callable[P, Y]) -> RuleFunction[P, Y]:
    """Run a function again for its gradient, instead of keeping what it computes on the way.

    Random numbers, such as the mask of a dropout, are the same in both runs, in eager mode and in a
    `tf.function`. Variables, parameters and tensors that `f` closes over get their gradients. Higher
    derivatives and forward mode are those of `f`.

    Args:
        f: Any callable: a function, a layer, a module. It takes and returns tensors in any structure.

    Example:
        >>> import numpy as np, pullback as pb
        >>> block = pb.checkpoint(lambda x, *, scale: np.tanh(scale * x))
        >>> block(np.zeros(2), scale=2).tolist()
        [0.0, 0.0]

    Do not use it for a single operation: it keeps its inputs already. A block of many is what pays.
    """
    require_functions("checkpoint", "pb.checkpoint(f)", f=f)

    def apply(plan: Plan, tensors: list[Tensor]) -> Any:
        return framework.of(plan.host).checkpoint(plan, tensors)

    return without_pushforward(made_of(function_of(rule_of(f, EXACT), apply), f))
