"""`reversible`: a chain of additive couplings, which keeps its outputs and goes back through them.

Invariant: values and gradients are those of the chain, and what is kept does not grow with its depth. What is
gone back through is rounded, so the inputs that come out at the end are held against the given ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.define import function_of
from pullback.errors import DefinitionError, NoTensorError
from pullback.hosts.operation import Tensor
from pullback.options import require_functions, require_number
from pullback.plan import Plan
from pullback.recompute import framework
from pullback.recompute.chain import Chain
from pullback.replace.graft import made_of, without_pushforward
from pullback.rule import EXACT, rule_of
from pullback.typed import RuleFunction
from pullback.unconverted import unconverted

Half = Callable[[Any], Any]
_FIX = "pb.reversible([(f, g), (h, k)])"


@unconverted
def reversible(
    blocks: Iterable[tuple[Half, Half]], *, drift: float | None = 1e-3
) -> RuleFunction[[Any, Any], tuple[Any, Any]]:
    """Chain blocks that can be undone, and undo them for the gradient, instead of keeping their states.

    A block (f, g) takes (x1, x2) to (y1, y2), with y1 = x1 + f(x2) and y2 = x2 + g(y1). What is kept is the
    input and the output of the chain, however deep it is; every function runs once more. Variables,
    parameters and tensors that a function closes over get their gradients, and its random numbers are the
    same in both runs. Higher derivatives and forward mode are those of the chain.

    Args:
        blocks: Pairs of functions, layers or modules. `f` takes x2 and gives a tensor like x1; `g` takes y1
            and gives one like x2.
        drift: How far the inputs that are recovered may be from the given ones, relative to their norm.
            Beyond it there is a `DriftWarning`; in a graph of TensorFlow, which cannot warn, an error, and
            NaN under XLA. None asks nothing.

    Example:
        >>> import numpy as np, pullback as pb
        >>> chain = pb.reversible([(np.sin, np.cos), (np.tanh, np.sin)])
        >>> y1, y2 = chain(np.zeros(2), np.zeros(2))

    Do not use it where what a block adds is much larger than what it adds to: that is lost in rounding, and
    cannot be recovered. Scale it down, or use `checkpoint`.
    """
    halves = _halves(blocks)
    require_number("reversible", "drift", drift, least=0, fix="drift=1e-3", above=True)
    chain = Chain([rule_of(half, EXACT) for half in halves], drift)

    @unconverted  # the host converts each function itself, when a graph is built
    def reversible(x1: Any, x2: Any) -> tuple[Any, Any]:
        y1, y2 = chain.run(x1, x2)
        return y1, y2

    def apply(plan: Plan, tensors: list[Tensor]) -> Any:
        if not plan.flat or plan.count != 2:
            raise NoTensorError.about(
                "reversible",
                found=", ".join(f"{slot.name} is {_described(slot)}" for slot in plan.slots),
                expected="two tensors, x1 and x2",
                fix="chain(x1, x2)",
            )
        return tuple(framework.of(plan.host).reversible(plan, chain, tensors))

    function = made_of(function_of(rule_of(reversible, EXACT), apply), reversible)
    vars(function).update(parts=halves, handed=lambda k, state: state[1 - k % 2])  # for the layers among them
    return without_pushforward(function)


def _halves(blocks: Any) -> list[Half]:
    """List the functions of all blocks, one after the other."""
    pairs = list(blocks) if isinstance(blocks, Iterable) else []
    if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
        raise DefinitionError.about(
            "reversible", found=f"blocks={blocks!r}"[:80], expected="a list of pairs of functions", fix=_FIX
        )
    for f, g in pairs:
        require_functions("reversible", _FIX, f=f, g=g)
    return [half for pair in pairs for half in pair]


def _described(slot: Any) -> str:
    if slot.tree is not None:
        return "a structure"
    return "a tensor" if slot.has_tensor else f"{slot.leaves[0]!r}"[:40]
