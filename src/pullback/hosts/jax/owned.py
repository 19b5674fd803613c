"""The primitive `owned`: outputs that a body computed, made to depend on its inputs by the rule.

A rule that is differentiated runs its body, and a derivative around that one differentiates the body's
operations: right for the residuals, and wrong for the outputs, which have a rule. Those go through this
identity of (outputs, residuals, inputs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from pullback.hosts.jax import pushed
from pullback.hosts.jax.pushed import Derivative

primitive = Primitive("pullback_owned")
primitive.multiple_results = True


def own(
    derivative: Derivative, outputs: Sequence[Any], residuals: Sequence[Any], inputs: Sequence[Any]
) -> list[Any]:
    """Give the outputs of a run as results of its rule."""
    counts = len(outputs), len(residuals)
    owned: list[Any] = primitive.bind(*outputs, *residuals, *inputs, derivative=derivative, counts=counts)
    return owned


@primitive.def_impl
def _evaluate(*operands: Any, derivative: Derivative, counts: tuple[int, int]) -> list[Any]:
    return list(operands[: counts[0]])


@primitive.def_abstract_eval
def _types(*operands: Any, derivative: Derivative, counts: tuple[int, int]) -> list[Any]:
    return list(operands[: counts[0]])


def _lower(_: Any, *operands: Any, derivative: Derivative, counts: tuple[int, int]) -> list[Any]:
    """Compile to nothing: the outputs are there."""
    return list(operands[: counts[0]])


def _split(values: Sequence[Any], counts: tuple[int, int]) -> tuple[Any, Any, Any]:
    first, second = counts[0], sum(counts)
    return values[:first], values[first:second], values[second:]


def _jvp(primals: Any, tangents: Any, *, derivative: Derivative, counts: tuple[int, int]) -> Any:
    outputs, residuals, inputs = _split(primals, counts)
    owned = own(derivative, outputs, residuals, inputs)
    moved = pushed.tangents_of(derivative, owned, residuals, _split(tangents, counts)[2])
    return owned, moved


def _batch(axis: Any, operands: Any, places: Any, *, derivative: Derivative, counts: tuple[int, int]) -> Any:
    outputs, residuals, inputs = _split(list(zip(operands, places)), counts)
    if all(place is None for place in places):
        return own(derivative, *([x for x, _ in part] for part in (outputs, residuals, inputs))), [
            None for _ in outputs
        ]
    batched = pushed.over_batch(derivative, axis, [place for _, place in residuals])
    owned = own(
        batched,
        [pushed.front(axis, x, place) for x, place in outputs],
        [x if place is None else pushed.front(axis, x, place) for x, place in residuals],
        [pushed.front(axis, x, place) for x, place in inputs],
    )
    return owned, [0] * len(owned)


ad.primitive_jvps[primitive] = _jvp
batching.fancy_primitive_batchers[primitive] = _batch
mlir.register_lowering(primitive, _lower)
