"""What a pushforward takes and returns: one tangent per tensor argument in, one per output out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import tree
from pullback.contract import require_return
from pullback.cotangent import require_tensor, shown
from pullback.errors import CotangentCountError, GradSignatureError
from pullback.hosts.base import Host
from pullback.outputs import TENSOR, Outputs
from pullback.rule import Rule, shown_signature


def require_takes(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], rule: Rule
) -> None:
    """Refuse a pushforward that cannot be called with the tangents and the arguments."""
    signature = shown_signature(function)
    if signature is None:  # let the call itself decide
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
    returned: Any, outputs: Outputs, rule: Rule, function: Callable[..., Any], host: Host
) -> list[Any]:
    """Lay what a pushforward returned along the outputs: one tangent, or None, per tensor output."""
    if returned is None:
        require_return(function, rule.where, "one tangent per output", "dy")
    leaves = tree.match(outputs.tree, returned)
    if leaves is None or (outputs.tree is None and isinstance(returned, (tuple, list, dict))):
        raise CotangentCountError.about(
            rule.where,
            found="the pushforward returned another structure than the outputs",
            expected="one tangent per output, in the structure of the outputs",
            fix="return the tangents as the body returns the outputs",
        )
    tangents = [leaf for leaf, static in zip(leaves, outputs.statics) if static is TENSOR]
    for i, tangent in enumerate(tangents):
        if tangent is not None and not host.is_tensor(tangent):
            expected = "a tangent of its output's shape"
            require_tensor(tangent, host, rule.where, shown(function), "an output", expected, False)
            tangents[i] = host.tensor(tangent, where=rule.where, argument="a tangent")
    return tangents
