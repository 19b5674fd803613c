"""An external function made anew, with other functions in the places of those that its gradient runs.

For whoever tries edits of them: it runs here and at once, whatever executor, timeout or cache was asked for,
because a worker would find the user's own functions by their names. The user's object stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from pullback.hosts.operation import Tensor
from pullback.plan import Plan
from pullback.wrapping.foreign import Array
from pullback.wrapping.function import External
from pullback.wrapping.operation import bare
from pullback.wrapping.task import Function
from pullback.wrapping.wrap import AllPartials, external_of

ROLES = ("pullback", "pushforward", "jacobian", "partials")  # the first that is given is the gradient


def functions(held: External) -> tuple[Function, ...]:
    """Give the functions that the gradient runs, as the user wrote them."""
    role = _role(held)
    given = None if role is None else held.role(role)
    return tuple(given.partials) if isinstance(given, AllPartials) else () if given is None else (given,)


def exchanged(held: External, new: Sequence[Function], function: Function | None = None) -> External:
    """Put other functions in the places of these, and another one in the place of the function itself."""
    role = _role(held)
    roles = {name: part for name, part in held.roles.items() if name != "function"}
    if role is not None:
        many = isinstance(roles[role], AllPartials)
        roles[role] = AllPartials(list(new)) if many else new[0]
    here = dataclasses.replace(held.options, executor=None, timeout=None, retries=0, cache=0)
    return External(function or held.role("function"), roles, here, held.where)


def anew(call: Any, of: Callable[[Function], Function]) -> Any:
    """Make a decorated function of what `of` gives for each function that the user wrote."""
    held: External = call.external
    made = exchanged(held, [of(part) for part in functions(held)], of(held.role("function")))
    return external_of(made, call.rule, call.rule.intent)


def opening(
    call: Any, made: Plan, tensors: list[Tensor], array: Callable[[Tensor], Array]
) -> Callable[..., list[Array]]:
    """Run a call forward; give its gradient on arrays, with the functions that it runs in its closure."""
    held: External = call.external
    found, layout = bare(held.site(made), made.host, tensors)
    kept = [array(part) for part in (*tensors, *found)]
    written = functions(held)

    def pull(*cotangents: Array) -> list[Array]:
        external = exchanged(held, written)
        routine = external.back(external.site(made), layout)
        results: list[Array] = routine([*cotangents, *kept])
        return results

    return pull


def _role(held: External) -> str | None:
    return next((role for role in ROLES if role in held.roles), None)
