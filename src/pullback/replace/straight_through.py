"""`straight_through`: any function forward, the identity backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.define import function_of
from pullback.errors import SurrogateError
from pullback.hosts.operation import Tensor
from pullback.options import require_functions
from pullback.plan import Plan
from pullback.replace.graft import Graft, made_of, values_of, without_pushforward
from pullback.replace.surrogate import pass_on, require_same
from pullback.rule import Intent, rule_of
from pullback.typed import P, RuleFunction, Y
from pullback.unconverted import unconverted


def first_argument(x: Any, *rest: Any, **options: Any) -> Any:
    """Give the first argument back: what a straight-through gradient is the derivative of."""
    return x


@unconverted
def straight_through(f: Callable[P, Y]) -> RuleFunction[P, Y]:
    """Let cotangents pass a function as if it were the identity of its first argument.

    Other tensor arguments get no gradient. Second order: zero. Forward mode: the tangent of the first
    argument.

    Args:
        f: A function whose output has the shape of its first argument: a quantiser, a rounding.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> quantise = pb.straight_through(lambda w: tf.round(w * 8) / 8)

    Do not use it for a function that is far from the identity: `surrogate` says what to take instead.
    """
    require_functions("straight_through", "pb.straight_through(round)", f=f)

    def apply(plan: Plan, tensors: list[Tensor]) -> Any:
        outputs, values = values_of(plan, tensors)
        first = plan.moving[0]
        sources = [tensors[place] for place in first.places if place is not None]
        if len(sources) != len(values):
            raise SurrogateError.about(
                plan.where,
                found=f"it has {len(values)} outputs, and its first argument {len(sources)} tensors",
                expected="one output per tensor of the first argument",
                fix="pb.surrogate(f, like=…)",
            )
        require_same(plan, values, sources, f"its argument `{first.name}`")
        return Graft(plan, outputs, len(values), pass_on).applied(values, sources)

    function = function_of(rule_of(f, Intent("like", function=first_argument)), apply)
    return without_pushforward(made_of(function, f))
