"""Whether a function can take what it is handed: asked when it has refused, so a good call costs nothing.

Python and the frameworks say of such a call only how many arguments were missing. The words here are those of
whoever handed them over, and knows what they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback.cotangent import shown
from pullback.hosts.base import Host


def run(
    host: Host,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    where: str,
    refusal: Callable[[str], Exception],
) -> Any:
    """Call a function of the user's; raise the refusal, made of what was found, if it cannot be called so."""
    try:
        return host.run(function, args, kwargs, where)
    except TypeError as error:
        found = mismatch(function, args, kwargs, error)
        if not found:
            raise
        raise refusal(found) from error


def mismatch(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: TypeError
) -> str:
    """Say what a function takes, if that is not what it was handed; nothing of an error inside of it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin, which cannot be asked; its own error is a plain one
        if type(error) is not TypeError:
            return ""
        count = len(args) + len(kwargs)
        return f"{shown(function)} did not take the {count} argument{'' if count == 1 else 's'} it was handed"
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return f"{shown(function)} takes ({', '.join(signature.parameters)})"
    return ""
