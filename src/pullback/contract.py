"""What a `grad` returned, and the one place where it is checked and laid along the inputs.

In: whatever the user's function returned. Out: a flat list with one cotangent, or None, per tensor of the
call, each of its input's shape and kind. Everything that breaks a promise of `docs/contract.md` is raised
here, or for a single cotangent in `cotangent.py`, in words that name the function, the argument, what was
found and what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pullback import tree
from pullback.cotangent import conform, cotangent_names, shown
from pullback.endings import runs_off
from pullback.errors import CapturedVariableError, CotangentCountError
from pullback.hosts import names
from pullback.hosts.operation import Cotangents, Tensor
from pullback.outputs import accepts
from pullback.plan import Plan, Slot


def settle(
    returned: Any, plan: Plan, tensors: Sequence[Tensor], variables: Sequence[Any], grad: Callable[..., Any]
) -> Cotangents:
    """Normalise what `grad` returned to one cotangent, or None, per tensor of the call."""
    of_variables: list[Any] = []
    if variables and returned is not None:
        returned, of_variables = split_variables(returned, variables, plan, grad)
    inputs, second = laid(returned, plan, tensors, grad)
    host = plan.host
    for i, (cotangent, like) in enumerate(zip(inputs, tensors)):
        if cotangent is not None and not host.fit([cotangent], [like]):
            inputs[i] = conform(cotangent, like, host, plan.where, f"argument `{plan.names[i]}`", grad)
    return Cotangents(inputs, of_variables, second)


def laid(
    returned: Any, plan: Plan, tensors: Sequence[Tensor], grad: Callable[..., Any]
) -> tuple[list[Any], Callable[..., Any] | None]:
    """Lay what `grad` returned, as it is, along the tensors of the call; give `gradgrad`, if it is there."""
    if returned is None:
        moving = plan.moving
        require_return(grad, plan.where, _expected_count(moving), _tuple_of(moving, grad))
    second = None
    last = returned[-1] if isinstance(returned, (tuple, list)) and len(returned) >= 2 else None
    if callable(last) and not _ends_in_structure(returned, plan, tensors):
        second = last
        returned = returned[0] if len(returned) == 2 else tuple(returned[:-1])
    inputs: list[Any] = [None] * len(tensors)
    for slot, value in _by_slot(returned, plan, tensors, grad):
        leaves = tree.match(slot.tree, value)
        assert leaves is not None
        for place, leaf in zip(slot.places, leaves):
            # statics and integers have no gradient, whatever stands in their place
            if place is not None and plan.host.differentiable(tensors[place]):
                inputs[place] = leaf
    return inputs, second


def require_return(function: Callable[..., Any], where: str, expected: str, fix: str) -> None:
    """Refuse a None that nobody wrote: a function that can end without a `return`."""
    if runs_off(function):
        raise CotangentCountError.about(
            where,
            found=f"{shown(function)} returned nothing: it can end without a return statement",
            expected=expected,
            fix=f"return {fix}   # on every path; return None where there is none",
        )


def _by_slot(
    returned: Any, plan: Plan, tensors: Sequence[Tensor], grad: Callable[..., Any]
) -> list[tuple[Slot, Any]]:
    """Pair each argument with what was returned for it."""
    slots = plan.slots
    readings = _readings(plan, tensors)
    moving, smooth = readings[:2]
    if isinstance(returned, Mapping) and not _is_structure_of(returned, moving):
        return _by_name(returned, slots, plan, grad)
    if isinstance(returned, (tuple, list)):
        for reading in readings:
            if len(reading) == len(returned):
                pairs = list(zip(reading, returned))
                if all(tree.match(slot.tree, value) is not None for slot, value in pairs):
                    return pairs
    for reading in (moving, smooth):  # a bare cotangent
        if len(reading) == 1 and tree.match(reading[0].tree, returned) is not None:
            if reading[0].tree is None and isinstance(returned, (tuple, list, dict)):
                break
            return [(reading[0], returned)]
    count = len(returned) if isinstance(returned, (tuple, list)) else 1
    raise CotangentCountError.about(
        plan.where,
        found=f"{shown(grad)} returned {count} cotangent{'' if count == 1 else 's'}"
        + (" of another structure than its argument" if count == len(moving) else ""),
        expected=_expected_count(moving),
        fix=f"return {_tuple_of(moving, grad)}"
        "   # None for an argument without a gradient, or a dict by name",
    )


def _readings(plan: Plan, tensors: Sequence[Tensor]) -> tuple[list[Slot], ...]:
    """List what one cotangent each may be meant for; nested sets: equal counts mean equal arguments."""
    moving = plan.moving
    differentiable = [p for p, tensor in enumerate(tensors) if plan.host.differentiable(tensor)]
    smooth = [slot for slot in moving if not set(slot.places).isdisjoint(differentiable)]
    return moving, smooth, [slot for slot in plan.slots if slot.passed], list(plan.slots)


def _ends_in_structure(returned: Sequence[Any], plan: Plan, tensors: Sequence[Tensor]) -> bool:
    """Tell the cotangent of a last argument that is a module, and can be called, from a `gradgrad`."""
    last = returned[-1]
    if not tree.is_container(last):
        return False
    ends = [reading[-1] for reading in _readings(plan, tensors) if len(reading) == len(returned)]
    return any(slot.tree is not None and tree.match(slot.tree, last) is not None for slot in ends)


def _is_structure_of(returned: Mapping[Any, Any], moving: Sequence[Slot]) -> bool:
    """Tell a dict by argument name from the cotangent of a lone argument that is itself a dict."""
    if len(moving) != 1 or moving[0].tree is None:
        return False
    return moving[0].name not in returned and tree.match(moving[0].tree, returned) is not None


def _by_name(
    returned: Mapping[str, Any], slots: Sequence[Slot], plan: Plan, grad: Callable[..., Any]
) -> list[tuple[Slot, Any]]:
    left = dict(returned)
    pairs = []
    for slot in slots:
        star, bracket, index = slot.name.partition("[")
        if slot.name in left:
            value = left.pop(slot.name)
        elif bracket and star in returned:
            left.pop(star, None)
            value = returned[star][int(index[:-1])]
        else:
            value = None
        if tree.match(slot.tree, value) is None:
            raise CotangentCountError.about(
                plan.where,
                found=f"the cotangent of argument `{slot.name}` has another structure than the argument",
                expected=f"the structure of `{slot.name}`, with a cotangent or None in each place",
                fix=f"return dict({slot.name}=…)",
            )
        pairs.append((slot, value))
    if left:
        known = ", ".join(f"`{slot.name}`" for slot in slots)
        raise CotangentCountError.about(
            plan.where,
            found=f"{shown(grad)} returned a cotangent for `{next(iter(left))}`, which is no argument",
            expected=f"names among {known}",
            fix="rename it, or leave it out",
        )
    return pairs


def split_variables(
    returned: Any, variables: Sequence[Any], plan: Plan, grad: Callable[..., Any]
) -> tuple[Any, list[Any]]:
    """Take what a `grad` with `variables=` returned apart: for the arguments, and one per variable."""
    names = ", ".join(variable_name(variable, plan) for variable in variables)
    if not (
        isinstance(returned, (tuple, list)) and len(returned) == 2 and isinstance(returned[1], (tuple, list))
    ):
        raise CotangentCountError.about(
            plan.where,
            found=f"{shown(grad)} was given variables= and returned no list for them",
            expected="two things: the cotangents of the arguments, and a list with one per variable",
            fix=f"return dx, [{'dv' if variables else ''}]   # variables: {names or 'none was read'}",
        )
    given = list(returned[1])
    if len(given) != len(variables):
        raise CotangentCountError.about(
            plan.where,
            found=f"{shown(grad)} returned {len(given)} cotangents for {len(variables)} captured variables",
            expected=f"one each for {names}",
            fix="return them in the order of `variables`, None for one without a gradient",
        )
    host = plan.host
    for i, (cotangent, variable) in enumerate(zip(given, variables)):
        if cotangent is not None and not host.fit([cotangent], [variable]):
            given[i] = conform(
                cotangent, variable, host, plan.where, f"variable `{variable_name(variable, plan)}`", grad
            )
    return returned[0], given


def variable_name(variable: Any, plan: Plan) -> str:
    """Name a captured variable: by its own name, or by that under which the body reaches it."""
    if isinstance(getattr(variable, "name", None), str):
        return str(variable.name)
    return names.name_of(plan, variable) or f"a parameter of shape {tuple(variable.shape)}"


def require_variables(grad: Callable[..., Any], variables: Sequence[Any], plan: Plan) -> None:
    """Refuse a captured variable whose gradient `grad` has no place for."""
    if accepts(grad).variables:
        return
    names = ", ".join(f"`{variable_name(variable, plan)}`" for variable in variables)
    raise CapturedVariableError.about(
        plan.where,
        found=f"the body uses the trainable variable{'s' if len(variables) > 1 else ''} {names}",
        expected="`grad` to take `variables=` and to return their gradients too",
        why="without a place for them they would silently get no gradient",
        fix="pass the variable as an argument, or write\n"
        "def grad(dy, variables=None):\n    return dx, [dv for v in variables]",
    )


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────


def _expected_count(moving: Sequence[Slot]) -> str:
    names = ", ".join(f"`{slot.name}`" for slot in moving)
    return f"{len(moving)}: one per tensor argument ({names}), or one per argument, or a dict by name"


def _tuple_of(moving: Sequence[Slot], grad: Callable[..., Any]) -> str:
    return ", ".join(cotangent_names((slot.name for slot in moving), grad))
