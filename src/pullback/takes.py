"""Whether a function can take what it is handed: asked when it has refused, so a good call costs nothing.

Python and the frameworks say of such a call only how many arguments were missing. The words here are those of
whoever handed them over, and knows what they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback.cotangent import shown
from pullback.hosts import ROOTS
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


_FRAMEWORKS = {*ROOTS, "keras", "numpy"}


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Give the signature of a function as far as it takes tensors; a TypeError or ValueError if it has none.

    The options of a framework's function, `name=` or `axis=`, are no places for a tensor. A ufunc shows
    that it takes anything, and knows how many.
    """
    count = getattr(function, "nin", None)
    if type(count) is int:
        parameters = [inspect.Parameter(f"x{i + 1}", inspect.Parameter.POSITIONAL_ONLY) for i in range(count)]
        return inspect.Signature(parameters)
    found = inspect.signature(function)
    parameters = list(found.parameters.values())
    if not is_framework(function) or not any(p.default is p.empty for p in parameters):
        return found
    return found.replace(parameters=sorted(map(_option, parameters), key=lambda p: p.kind))


def _option(parameter: inspect.Parameter) -> inspect.Parameter:
    if parameter.default is parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
        return parameter
    return parameter.replace(kind=parameter.KEYWORD_ONLY)


def is_framework(function: Callable[..., Any]) -> bool:
    """Tell whether a framework wrote a function."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] in _FRAMEWORKS


def mismatch(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], error: TypeError
) -> str:
    """Say what a function takes, if that is not what it was handed; nothing of an error inside of it."""
    try:
        known = signature(function)
    except (TypeError, ValueError):  # a builtin, which cannot be asked; its own error is a plain one
        if type(error) is not TypeError:
            return ""
        count = len(args) + len(kwargs)
        return f"{shown(function)} did not take the {count} argument{'' if count == 1 else 's'} it was handed"
    try:
        known.bind(*args, **kwargs)
    except TypeError:
        return f"{shown(function)} takes ({', '.join(known.parameters)})"
    return ""
