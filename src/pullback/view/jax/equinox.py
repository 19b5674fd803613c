"""Names of inputs where Equinox holds the user's arguments: taken apart, into arrays and all else."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from pullback.rule import signature_of

VJP, JVP = "equinox.filter_custom_vjp", "equinox.filter_custom_jvp"
FIRST = 2  # the place of the user's first argument: no other is differentiated by a `filter_custom_vjp`
FIXED = (0, 1, 3, 4)
# The arguments of a `filter_custom_jvp`, and those by name.
APART = re.compile(r"dynamic\[0\]\[(\d+)\]|dynamic\[1\]\['(\w+)'\]")


def signature(kind: str, held: Callable[..., Any], user: Any) -> inspect.Signature:
    """Give the parameters of the function that Equinox made, with the name of the one that is the user's."""
    known = inspect.signature(held)
    if kind != VJP:
        return known
    parameters = list(known.parameters.values())
    parameters[FIRST] = parameters[FIRST].replace(name=parameter(user, 0))
    return known.replace(parameters=parameters)


def called_as(path: str, user: Any) -> str:
    """Name an input as the user's function does, by its path in what Equinox made of the arguments."""
    found = APART.match(path)
    if found is None:
        return path
    return (found[2] or parameter(user, int(found[1]))) + path[found.end() :]


def parameter(user: Any, place: int) -> str:
    """Name the argument at a place."""
    for i, known in enumerate(signature_of(user).parameters.values()):
        if known.kind is known.VAR_POSITIONAL:
            return f"{known.name}[{place - i}]" if place else known.name
        if i == place:
            return known.name
    return f"argument {place}"
