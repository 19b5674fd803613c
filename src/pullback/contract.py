"""What a body and its `grad` may return, and the one place where it is checked and normalised.

In: whatever the user's functions returned. Out: a flat list with one cotangent, or None, per tensor of the
call, each of its input's shape and kind. Everything that breaks a promise of `docs/contract.md` is raised
here, or for a single cotangent in `cotangent.py`, in words that name the function, the argument, what was
found and what to write.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pullback import hosts, tree
from pullback.cotangent import conform, cotangent_names, described, shown
from pullback.endings import runs_off
from pullback.errors import (
    CapturedVariableError,
    CotangentCountError,
    GradSignatureError,
    HostError,
    MissingGradError,
    OutputError,
)
from pullback.hosts import Role, reached
from pullback.hosts.base import Cotangents, Host, Tensor
from pullback.rule import Rule, name_of
from pullback.takes import is_framework, signature

if TYPE_CHECKING:
    from pullback.call import Call, Slot

Spread = Literal["each", "whole", "flat"]


# ── what the body returns ────────────────────────────────────────────────────────────────────────────────


def split(result: Any, rule: Rule) -> tuple[Any, Callable[..., Any]]:
    """Take `y, grad`, `(y, z), grad` or `y, z, grad` apart into the outputs and `grad`."""
    if isinstance(result, (tuple, list)) and result:
        last = result[-1]
        given = callable(last) and not isinstance(last, type)  # a class makes objects, not cotangents
        if given and len(result) >= 2:
            return result[0] if len(result) == 2 else tuple(result[:-1]), last
        found = "only `grad`" if given else f"{len(result)} values, the last {_kind(last)}"
    else:
        found = "nothing" if result is None else f"{_kind(result)} alone"
    raise MissingGradError.about(
        rule.where,
        found=f"the body returned {found}",
        expected="its outputs and then `grad`, the function from cotangents to cotangents",
        fix="def grad(dy):\n    return …\nreturn y, grad",
    )


class _Static:
    """Stand for the place of a tensor among the leaves of the outputs."""

    def __repr__(self) -> str:
        return "<tensor>"


TENSOR = _Static()
ONE = [TENSOR]  # the statics of a lone tensor


def tensor_outputs(
    leaves: Sequence[Any], host: Host, rule: Rule, inputs: Sequence[Tensor]
) -> tuple[list[Any], list[Tensor]]:
    """Separate the outputs' leaves into statics, with `TENSOR` where a tensor stands, and the tensors."""
    statics: list[Any] = []
    tensors: list[Tensor] = []
    if len(leaves) == 1 and host.is_tensor(leaves[0]) and host.differentiable(leaves[0]):
        return ONE, list(leaves)
    for leaf in leaves:
        role = hosts.role(type(leaf))
        if role is host or role is Role.ARRAY or role is Role.NUMBER:
            tensors.append(host.tensor(leaf, where=rule.where, argument="an output"))
            statics.append(TENSOR)
        elif not isinstance(role, Role):
            raise HostError.about(
                rule.where,
                found=f"it was given {host.name} tensors, and returned one of {role.name}",
                expected="outputs of the framework that the arguments are of",
                fix="compute with the framework of the arguments, or convert the arguments first",
            )
        else:
            statics.append(leaf)
    if not any(map(host.differentiable, tensors)) and any(map(host.differentiable, inputs)):
        found = ", ".join(str(host.spec(tensor)) for tensor in tensors) or "no tensor"
        raise OutputError.about(
            rule.where,
            found=f"the outputs are: {found}",
            expected="at least one floating or complex output",
            why="gradients flow only through floating and complex tensors",
            fix="cast an output to a floating dtype" if tensors else "return a floating tensor",
        )
    return statics, tensors


# ── how `grad` is called ─────────────────────────────────────────────────────────────────────────────────


class _Accepts(NamedTuple):
    least: int
    most: float
    variables: bool


def accepts(function: Callable[..., Any]) -> _Accepts:
    """Tell how many positional arguments a function takes, and whether it takes `variables=`."""
    if type(function) is not FunctionType or (function.__dict__ and hasattr(function, "__wrapped__")):
        return _accepts_by_signature(function)  # a bound method has the code of its function, `self` in it
    code = function.__code__
    known = _known.get(id(code))  # a code object is hashed by its whole content: its id is enough
    if known is None:
        found = _accepts_by_code(code, len(function.__defaults__ or ()))
        found = _accepts_by_signature(function) if is_framework(function) else found
        known = _known[id(code)] = (code, found)
    return known[1]


def takes_one(grad: Callable[..., Any]) -> bool:
    """Tell quickly whether a function is known to take one cotangent."""
    if type(grad) is not FunctionType or grad.__dict__:
        return False
    known = _known.get(id(grad.__code__))
    return known is not None and known[1].least <= 1 <= known[1].most


_known: dict[int, tuple[Any, _Accepts]] = {}  # keeps the code alive, so that its id stays its own


def _accepts_by_code(code: Any, defaults: int) -> _Accepts:
    # Reading a signature costs as much as a small operation; a code object tells the same for nothing.
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    required = code.co_argcount - defaults
    variables = "variables" in names or bool(code.co_flags & inspect.CO_VARKEYWORDS)
    if "variables" in names[: code.co_argcount]:  # a place for the variables is none for a cotangent
        return _Accepts(required - (defaults == 0), code.co_argcount - 1, True)
    most = float("inf") if code.co_flags & inspect.CO_VARARGS else code.co_argcount
    return _Accepts(required, most, variables)


def _accepts_by_signature(function: Callable[..., Any]) -> _Accepts:
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature: let the call itself decide
        return _Accepts(0, float("inf"), True)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    cotangents = [p for p in places if p.name != "variables"]
    return _Accepts(
        sum(p.default is p.empty for p in cotangents),
        float("inf") if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(cotangents),
        any(p.kind is p.VAR_KEYWORD or p.name == "variables" for p in parameters),
    )


def spread(grad: Callable[..., Any], structure: tree.Tree | None, rule: Rule) -> Spread:
    """Choose how the cotangents reach `grad`: one each for a tuple, whole for any other structure.

    A `grad` written for a host that hands over the leaves of a structure one by one is understood too.
    """
    takes = accepts(grad)
    if structure is None and takes.least <= 1 <= takes.most:
        return "whole"
    template = None if structure is None else structure.template
    each = isinstance(template, (tuple, list)) and not tree.is_namedtuple(template)
    count = len(structure.children) if each and structure is not None else 1
    if takes.least <= count <= takes.most:
        return "each" if each else "whole"
    leaves = _count(structure)
    if structure is not None and takes.least <= leaves <= takes.most:
        return "flat"
    most = "any number" if takes.most == float("inf") else int(takes.most)
    found = f"{shown(grad)} takes {most} positional argument{'' if most == 1 else 's'}"
    required = f", {takes.least} of them required" if takes.most != takes.least else ""
    raise grad_signature(found + required, count, rule)


def grad_signature(found: str, count: int, rule: Rule) -> GradSignatureError:
    """Say that `grad` cannot take the cotangents."""
    names = ", ".join(["dy", "dz", "dw"][:count] if count <= 3 else [f"dy{i}" for i in range(count)])
    error: GradSignatureError = GradSignatureError.about(
        rule.where,
        found=found,
        expected=f"{count}: one cotangent per output",
        fix=f"def grad({names}):",
    )
    return error


def check_gradgrad(gradgrad: Callable[..., Any], count: int, rule: Rule) -> None:
    """Refuse a `gradgrad` that cannot take one cotangent per cotangent that `grad` returned."""
    takes = accepts(gradgrad)
    if not takes.least <= count <= takes.most:
        raise GradSignatureError.about(
            rule.where,
            found=f"`{name_of(gradgrad)}` cannot take {count} positional argument{'' if count == 1 else 's'}",
            expected=f"{count}: one per cotangent that `grad` returned",
            fix=f"def gradgrad({', '.join(f'ddx{i}' for i in range(count)) if count > 1 else 'ddx'}):",
        )


def _count(structure: tree.Tree | None) -> int:
    return 1 if structure is None else sum(map(_count, structure.children))


def spread_cotangents(
    how: Spread, structure: tree.Tree, statics: Sequence[Any], given: list[Any]
) -> list[Any]:
    """Arrange the cotangents of the outputs as the arguments of `grad`."""
    rest = iter(given)
    leaves = [next(rest) if static is TENSOR else None for static in statics]  # a static has no cotangent
    if how == "flat":
        return leaves
    whole = tree.unflatten(structure, leaves)
    return list(whole) if how == "each" else [whole]


# ── what `grad` returns ──────────────────────────────────────────────────────────────────────────────────


def settle(
    returned: Any, call: Call, tensors: Sequence[Tensor], variables: Sequence[Any], grad: Callable[..., Any]
) -> Cotangents:
    """Normalise what `grad` returned to one cotangent, or None, per tensor of the call."""
    if returned is None:
        moving = [slot for slot in call.slots if slot.has_tensor]
        require_return(grad, call.where, _expected_count(moving), _tuple_of(moving, grad))
    of_variables: list[Any] = []
    if variables:
        returned, of_variables = split_variables(returned, variables, call, grad)
    second = None
    last = returned[-1] if isinstance(returned, (tuple, list)) and len(returned) >= 2 else None
    if callable(last) and not _ends_in_structure(returned, call, tensors):
        second = last
        returned = returned[0] if len(returned) == 2 else tuple(returned[:-1])
    inputs: list[Tensor | None] = [None] * len(tensors)
    for slot, value in _by_slot(returned, call, tensors, grad):
        leaves = tree.match(slot.tree, value)
        assert leaves is not None
        for place, leaf in zip(slot.places, leaves):
            if place is None or leaf is None or not call.host.differentiable(tensors[place]):
                continue  # statics and integers have no gradient, whatever stands in their place
            like = tensors[place]
            if not call.host.fit([leaf], [like]):
                leaf = conform(leaf, like, call.host, call.where, f"argument `{slot.name}`", grad)
            inputs[place] = leaf
    return Cotangents(inputs, of_variables, second)


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
    returned: Any, call: Call, tensors: Sequence[Tensor], grad: Callable[..., Any]
) -> list[tuple[Slot, Any]]:
    """Pair each argument with what was returned for it."""
    slots = call.slots
    readings = _readings(call, tensors)
    moving, smooth = readings[:2]
    if isinstance(returned, Mapping) and not _is_structure_of(returned, moving):
        return _by_name(returned, slots, call, grad)
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
        call.where,
        found=f"{shown(grad)} returned {count} cotangent{'' if count == 1 else 's'}"
        + (" of another structure than its argument" if count == len(moving) else ""),
        expected=_expected_count(moving),
        fix=f"return {_tuple_of(moving, grad)}"
        "   # None for an argument without a gradient, or a dict by name",
    )


def _readings(call: Call, tensors: Sequence[Tensor]) -> tuple[list[Slot], ...]:
    """List what one cotangent each may be meant for; nested sets: equal counts mean equal arguments."""
    moving = [slot for slot in call.slots if slot.has_tensor]
    smooth = [slot for slot in moving if _smooth(slot, tensors, call.host)]
    return moving, smooth, [slot for slot in call.slots if slot.passed], call.slots


def _ends_in_structure(returned: Sequence[Any], call: Call, tensors: Sequence[Tensor]) -> bool:
    """Tell the cotangent of a last argument that is a module, and can be called, from a `gradgrad`."""
    last = returned[-1]
    if not tree.is_container(last):
        return False
    ends = [reading[-1] for reading in _readings(call, tensors) if len(reading) == len(returned)]
    return any(slot.tree is not None and tree.match(slot.tree, last) is not None for slot in ends)


def _smooth(slot: Slot, tensors: Sequence[Tensor], host: Host) -> bool:
    return any(p is not None and host.differentiable(tensors[p]) for p in slot.places)


def _is_structure_of(returned: Mapping[Any, Any], moving: Sequence[Slot]) -> bool:
    """Tell a dict by argument name from the cotangent of a lone argument that is itself a dict."""
    if len(moving) != 1 or moving[0].tree is None:
        return False
    return moving[0].name not in returned and tree.match(moving[0].tree, returned) is not None


def _by_name(
    returned: Mapping[str, Any], slots: Sequence[Slot], call: Call, grad: Callable[..., Any]
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
                call.where,
                found=f"the cotangent of argument `{slot.name}` has another structure than the argument",
                expected=f"the structure of `{slot.name}`, with a cotangent or None in each place",
                fix=f"return dict({slot.name}=…)",
            )
        pairs.append((slot, value))
    if left:
        known = ", ".join(f"`{slot.name}`" for slot in slots)
        raise CotangentCountError.about(
            call.where,
            found=f"{shown(grad)} returned a cotangent for `{next(iter(left))}`, which is no argument",
            expected=f"names among {known}",
            fix="rename it, or leave it out",
        )
    return pairs


def split_variables(
    returned: Any, variables: Sequence[Any], call: Call, grad: Callable[..., Any]
) -> tuple[Any, list[Any]]:
    """Take what a `grad` with `variables=` returned apart: for the arguments, and one per variable."""
    names = ", ".join(variable_name(variable, call) for variable in variables)
    if not (
        isinstance(returned, (tuple, list)) and len(returned) == 2 and isinstance(returned[1], (tuple, list))
    ):
        raise CotangentCountError.about(
            call.where,
            found=f"{shown(grad)} was given variables= and returned no list for them",
            expected="two things: the cotangents of the arguments, and a list with one per variable",
            fix=f"return dx, [{'dv' if variables else ''}]   # variables: {names or 'none was read'}",
        )
    given = list(returned[1])
    if len(given) != len(variables):
        raise CotangentCountError.about(
            call.where,
            found=f"{shown(grad)} returned {len(given)} cotangents for {len(variables)} captured variables",
            expected=f"one each for {names}",
            fix="return them in the order of `variables`, None for one without a gradient",
        )
    host = call.host
    for i, (cotangent, variable) in enumerate(zip(given, variables)):
        if cotangent is not None and not host.fit([cotangent], [variable]):
            given[i] = conform(
                cotangent, variable, host, call.where, f"variable `{variable_name(variable, call)}`", grad
            )
    return returned[0], given


def variable_name(variable: Any, call: Call) -> str:
    """Name a captured variable: by its own name, or by that under which the body reaches it."""
    if isinstance(getattr(variable, "name", None), str):
        return str(variable.name)
    return reached.name_of(call, variable) or f"a parameter of shape {tuple(variable.shape)}"


def require_variables(grad: Callable[..., Any], variables: Sequence[Any], call: Call) -> None:
    """Refuse a captured variable whose gradient `grad` has no place for."""
    if accepts(grad).variables:
        return
    names = ", ".join(f"`{variable_name(variable, call)}`" for variable in variables)
    raise CapturedVariableError.about(
        call.where,
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


def _kind(value: Any) -> str:
    return described(value) if isinstance(hosts.role(type(value)), Role) else "a tensor"
