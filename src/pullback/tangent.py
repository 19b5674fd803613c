"""What a pushforward takes and returns: one tangent per tensor argument in, one per output out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback import tree
from pullback.contract import TENSOR, require_return
from pullback.cotangent import require_tensor, shown
from pullback.errors import CotangentCountError, CotangentShapeError, GradSignatureError
from pullback.hosts.base import Host, Operation, Tensor, same_shape, show_shape
from pullback.rule import Rule


def require_takes(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], rule: Rule
) -> None:
    """Refuse a pushforward that cannot be called with the tangents and the arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin: let the call itself decide
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        raise GradSignatureError.about(
            rule.where,
            found=f"{shown(function)}, its pushforward, takes ({', '.join(signature.parameters)})",
            expected="one tangent per tensor argument, then the arguments of the function",
            fix=f"def _(dx, {', '.join(rule.signature.parameters)}):",
        ) from None


def settle(
    returned: Any,
    structure: tree.Tree | None,
    statics: Sequence[Any],
    rule: Rule,
    function: Callable[..., Any],
    host: Host,
) -> list[Any]:
    """Lay what a pushforward returned along the outputs: one tangent, or None, per tensor output."""
    if returned is None:
        require_return(function, rule.where, "one tangent per output", "dy")
    leaves = tree.match(structure, returned)
    if leaves is None or (structure is None and isinstance(returned, (tuple, list, dict))):
        raise CotangentCountError.about(
            rule.where,
            found="the pushforward returned another structure than the outputs",
            expected="one tangent per output, in the structure of the outputs",
            fix="return the tangents as the body returns the outputs",
        )
    tangents = [leaf for leaf, static in zip(leaves, statics) if static is TENSOR]
    for i, tangent in enumerate(tangents):
        if tangent is not None and not host.is_tensor(tangent):
            expected = "a tangent of its output's shape"
            require_tensor(tangent, host, rule.where, shown(function), "an output", expected, False)
            tangents[i] = host.tensor(tangent, where=rule.where, argument="a tangent")
    return tangents


def fitted(tangents: Sequence[Any], outputs: Sequence[Tensor], operation: Operation) -> list[Any]:
    """Hold what a pushforward gave against the outputs, and cast it to their dtypes."""
    host, results = operation.host, list(tangents)
    for i, (tangent, output) in enumerate(zip(tangents, outputs)):
        if tangent is None or not host.differentiable(output) or host.fit([tangent], [output]):
            continue
        have, want = host.spec(tangent).shape, host.spec(output).shape
        if have is not None and want is not None and not same_shape(have, want):
            raise CotangentShapeError.about(
                operation.where,
                found=f"the pushforward returned shape {show_shape(have)} for an output of shape "
                f"{show_shape(want)}",
                expected="a tangent of its output's shape",
                fix=f"return a tangent of shape {show_shape(want)}",
            )
        results[i] = host.conform(tangent, output)
    return results
