"""What a body returned: its outputs, and the `grad` that takes their cotangents.

`y, grad`, `(y, z), grad`, `y, z, grad`, a dict, a structure with statics in it: read in one place, for the
hosts and for the checker. What breaks a promise of `docs/contract.md` is an error that names the function,
what was found and what to write.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, NamedTuple

from pullback import hosts, tree
from pullback.cotangent import described, shown
from pullback.errors import GradSignatureError, HostError, MissingGradError, OutputError
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.operation import Tensor
from pullback.rule import Rule, name_of
from pullback.takes import is_framework, signature

Arrangement = Literal["each", "whole", "flat"]  # of the cotangents, when `grad` is called


class _Tensor:
    """Stand for the place of a tensor among the leaves of the outputs."""

    def __repr__(self) -> str:
        return "<tensor>"


TENSOR = _Tensor()


@dataclass(frozen=True)
class Outputs:
    """What a body returned, without its tensors."""

    tree: tree.Tree | None = None
    statics: tuple[Any, ...] = (TENSOR,)  # the leaves; `TENSOR` where one stands
    arrangement: Arrangement = "whole"

    def filled(self, tensors: Sequence[Tensor]) -> Any:
        """Give the structure that the body returned, with these tensors in it."""
        rest = iter(tensors)
        leaves = [next(rest) if static is TENSOR else static for static in self.statics]
        return tree.unflatten(self.tree, leaves)

    def arranged(self, cotangents: Sequence[Tensor]) -> list[Any]:
        """Arrange the cotangents of the outputs as the arguments of `grad`."""
        if self.tree is None:
            return list(cotangents)
        rest = iter(cotangents)
        leaves = [next(rest) if static is TENSOR else None for static in self.statics]  # a static has none
        if self.arrangement == "flat":
            return leaves
        whole = tree.unflatten(self.tree, leaves)
        return list(whole) if self.arrangement == "each" else [whole]


LONE = Outputs()  # one tensor


@functools.cache
def each(count: int) -> Outputs:
    """Give the form of so many tensors, with a cotangent each: of one, or a tuple."""
    return LONE if count == 1 else Outputs(tree.flatten((TENSOR,) * count)[1], (TENSOR,) * count, "each")


def read(
    result: Any, rule: Rule, host: Host, inputs: Sequence[Tensor]
) -> tuple[Outputs, list[Tensor], Callable[..., Any], list[Any]]:
    """Take what a body returned apart: its form, its tensors, `grad`, and the outlines of the tensors."""
    if type(result) is tuple and len(result) == 2:
        output, grad = result
        if type(grad) is FunctionType and not grad.__dict__ and id(grad.__code__) in _take_one:
            outline = host.lone(output)
            if outline is not None:  # nearly every call ends here
                return LONE, [output], grad, [outline]
    returned, grad = split(result, rule)
    form, tensors = of_values(returned, rule, host, inputs)
    arrangement = _arrangement(grad, form.tree, rule)
    if form is not LONE:
        form = Outputs(form.tree, form.statics, arrangement)
    return form, tensors, grad, list(map(host.outline, tensors))


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


def of_values(
    returned: Any, rule: Rule, host: Host, inputs: Sequence[Tensor]
) -> tuple[Outputs, list[Tensor]]:
    """Take outputs apart into their form and their tensors."""
    if host.is_tensor(returned):
        if host.differentiable(returned):
            return LONE, [returned]
        leaves, structure = [returned], None
    else:
        leaves, structure = tree.flatten(returned)
    statics: list[Any] = []
    tensors: list[Tensor] = []
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
    return Outputs(structure, tuple(statics), by_default(structure)), tensors


def by_default(structure: tree.Tree | None) -> Arrangement:
    """Choose one cotangent each for a tuple, and a whole for any other structure."""
    template = None if structure is None else structure.template
    return "each" if isinstance(template, (tuple, list)) and not tree.is_namedtuple(template) else "whole"


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
        if known[1].least <= 1 <= known[1].most:
            _take_one.add(id(code))
    return known[1]


_known: dict[int, tuple[Any, _Accepts]] = {}  # keeps the code alive, so that its id stays its own
_take_one: set[int] = set()  # the ids of code that is known to take one cotangent


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
    positions = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    cotangents = [p for p in positions if p.name != "variables"]
    return _Accepts(
        sum(p.default is p.empty for p in cotangents),
        float("inf") if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(cotangents),
        any(p.kind is p.VAR_KEYWORD or p.name == "variables" for p in parameters),
    )


def _arrangement(grad: Callable[..., Any], structure: tree.Tree | None, rule: Rule) -> Arrangement:
    """Choose how the cotangents reach `grad`: one each for a tuple, whole for any other structure.

    A `grad` written for a host that hands over the leaves of a structure one by one is understood too.
    """
    takes = accepts(grad)
    chosen = by_default(structure)
    count = len(structure.children) if chosen == "each" and structure is not None else 1
    if takes.least <= count <= takes.most:
        return chosen
    if structure is not None and takes.least <= _count(structure) <= takes.most:
        return "flat"
    most = "any number" if takes.most == float("inf") else int(takes.most)
    found = f"{shown(grad)} takes {most} positional argument{'' if most == 1 else 's'}"
    required = f", {takes.least} of them required" if takes.most != takes.least else ""
    raise grad_signature(found + required, count, rule)


def grad_signature(found: str, count: int, rule: Rule) -> GradSignatureError:
    """Say that `grad` cannot take the cotangents."""
    names = ", ".join(["dy", "dz", "dw"][:count] if count <= 3 else [f"dy{i}" for i in range(count)])
    return GradSignatureError.about(
        rule.where,
        found=found,
        expected=f"{count}: one cotangent per output",
        fix=f"def grad({names}):",
    )


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


def _kind(value: Any) -> str:
    return described(value) if isinstance(hosts.role(type(value)), Role) else "a tensor"
