"""The plan of a call: the call up to the values of its tensors.

The invariant: the tensors of a call are listed once per place where they stand, in the order of the
signature, whether they came by position, by keyword, by default or inside a structure; and `arguments` gives
the body exactly what it was called with, such a list put in their places. Python's own calling convention
thus ends here, and hosts see a flat list. A plan holds no tensor, and is found again when a rule is called in
the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import copysign
from typing import Any, NoReturn

from pullback import hosts, tree
from pullback.errors import HostError, NoTensorError
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.operation import Tensor
from pullback.rule import Rule

_CONSTANTS = (int, float, bool, str, type(None))  # statics that hold nothing, and are the same if equal
_MOST = 64  # plans of calls that differ in their constants alone


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one argument: its name, its structure, and where its tensors are in the flat list."""

    name: str
    leaves: tuple[Any, ...]  # the statics; None where a tensor stands
    tree: tree.Tree | None
    passed: bool
    places: tuple[int | None, ...]  # per leaf: its index among the tensors, or None for a static

    @property
    def has_tensor(self) -> bool:
        return any(place is not None for place in self.places)

    def filled(self, tensors: Sequence[Any]) -> Any:
        """Give the argument with these tensors in it."""
        leaves = [leaf if place is None else tensors[place] for leaf, place in zip(self.leaves, self.places)]
        return tree.unflatten(self.tree, leaves)


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """A call of a rule without its tensors."""

    rule: Rule
    host: Host
    slots: tuple[Slot, ...]
    keywords: frozenset[str]
    count: int  # of the tensors
    flat: bool  # whether the arguments are tensors and nothing else
    closed: bool  # whether they are tensors and constants: an object among them may hold anything
    symbolic: bool = False  # its tensors are those of a Keras model: there is nothing to run yet
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)  # what hosts have heard of such calls

    def arguments(self, tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Give the arguments of the call with these tensors in the places of its own."""
        if self.flat:
            return list(tensors), {}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        skipped = False
        for slot in self.slots:
            if not slot.passed and not slot.has_tensor:
                skipped = True  # the body has the default itself
            elif skipped or slot.name in self.keywords:
                kwargs[slot.name] = slot.filled(tensors)
            else:
                args.append(slot.filled(tensors))
        return args, kwargs

    def converted(self, tensors: Sequence[Any]) -> list[Tensor]:
        """Give what stands in the places of the tensors as the host computes with it."""
        where = self.rule.where
        return [self.host.tensor(t, where=where, argument=name) for t, name in zip(tensors, self.names)]

    def way(self, tensors: Sequence[Any]) -> Any:
        """Name the plan for a shorter way: a call of tensors alone by what is seen of it without a plan.

        A rule in whose place its host may run an operation of its own asks for that first, by its plan.
        """
        asked = self.rule.own is not None and self.host.fused
        return (self.count, type(tensors[0])) if self.flat and not asked else self

    def body(self) -> Callable[..., Any]:
        """Give the body as a function of the tensors alone."""
        body = self.rule.body
        if self.flat:
            return body
        marks = [object() for _ in range(self.count)]
        args, kwargs = self.arguments(marks)
        places = [args.index(mark) for mark in marks if mark in args]

        def run(*tensors: Any) -> Any:  # what is not a tensor stands in its place already
            given = args.copy()
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            return body(*given, **kwargs)

        def run_by_name(*tensors: Any) -> Any:
            given, named = self.arguments(tensors)
            return body(*given, **named)

        return run if len(places) == self.count else run_by_name

    def named(self, tensors: Sequence[Any]) -> dict[str, Any]:
        """Give all arguments by their names."""
        return {slot.name: slot.filled(tensors) for slot in self.slots}

    @property
    def where(self) -> str:
        return self.rule.where

    @property
    def names(self) -> list[str]:
        """Name the argument that each tensor stands in."""
        return [slot.name for slot in self.slots for place in slot.places if place is not None]

    @property
    def moving(self) -> list[Slot]:
        """List the arguments that are or hold tensors."""
        return [slot for slot in self.slots if slot.has_tensor]

    @property
    def key(self) -> tuple[Any, ...]:
        """Name the statics, for what is remembered of such calls."""
        return tuple(_hashable(leaf) for slot in self.slots for leaf in slot.leaves)


def plan(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Plan, list[Tensor]]:
    """Give the plan of a call, and its tensors."""
    values = (*args, *kwargs.values()) if kwargs else args
    form: Any = tuple(map(type, values))
    if kwargs:
        form = (form, *kwargs)
    known = rule.plans.get(form)
    if known is not None:
        places, constants, plans = known
        made = plans.get(_key(values, constants) if constants else ())
        if made is not None:
            tensors = list(values) if places is None else [values[place] for place in places]
            if made.host.ready(tensors):
                return made, tensors
            if all(hosts.role(type(tensor)) is made.host for tensor in tensors):
                return made, made.converted(tensors)
    made, tensors = _made(rule, args, kwargs)
    if made.closed and not made.symbolic:
        made = _remembered(form, made, values, list(kwargs))
    return made, tensors


def _key(values: Sequence[Any], constants: Sequence[int]) -> tuple[Any, ...]:
    """List the constants of a call; those of equal types are the same if these lists are equal."""
    key = tuple([values[place] for place in constants])
    if 0.0 in key:  # or -0.0, which is equal to it
        key = (*key, *[copysign(1, value) for value in key if type(value) is float])
    return key


def _remembered(form: Any, made: Plan, values: Sequence[Any], keywords: list[str]) -> Plan:
    """Let calls of the same types and the same constants find a plan again; give the one that they find."""
    places: dict[bool, list[int]] = {True: [], False: []}
    first = len(values) - len(keywords)
    for i, slot in enumerate(slot for slot in made.slots if slot.passed):
        places[slot.has_tensor].append(i if i < first else first + keywords.index(slot.name))
    tensors, constants = places[True], places[False]
    as_given = None if tensors == list(range(len(values))) else tensors
    *_, plans = made.rule.plans.setdefault(form, (as_given, constants, {}))
    if len(plans) >= _MOST:  # a constant that is another one in every call
        plans.clear()
        made.rule.shortcuts.clear()
    known: Plan = plans.setdefault(_key(values, constants), made)
    if known.host is not made.host:
        known = plans[_key(values, constants)] = made
    return known


def _made(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Plan, list[Tensor]]:
    """Bind the arguments to the signature, and find the tensors in them."""
    found, keywords = _bound(rule, args, kwargs)
    leaves = [leaf for argument in found for leaf in argument.leaves]
    roles = [hosts.role(type(leaf)) for leaf in leaves]
    symbolic = Role.SYMBOL in roles
    host, wanted = (NUMPY, Role.SYMBOL) if symbolic else _host(rule, found, roles)
    tensors: list[Tensor] = []
    slots: list[Slot] = []
    kinds = iter(roles)
    for argument in found:
        places: list[int | None] = []
        statics: list[Any] = []
        for leaf in argument.leaves:
            role = next(kinds)
            own = role is host or role is wanted
            places.append(len(tensors) if own else None)
            statics.append(None if own else leaf)  # the body gets the tensor: the leaf is not kept
            if own:
                tensors.append(
                    leaf if symbolic else host.tensor(leaf, where=rule.where, argument=argument.name)
                )
        slots.append(Slot(argument.name, tuple(statics), argument.tree, argument.passed, tuple(places)))
    flat = _is_flat(slots, keywords)
    closed = not any(
        slot.tree is not None or type(slot.leaves[0]) not in _CONSTANTS if slot.passed else slot.has_tensor
        for slot in slots
    )
    return Plan(rule, host, tuple(slots), keywords, len(tensors), flat, closed, symbolic), tensors


def _is_flat(slots: Sequence[Slot], keywords: frozenset[str]) -> bool:
    """Tell whether a body can be called with the tensors alone, by position."""
    count = sum(slot.passed for slot in slots)
    return all(
        slot.tree is None and slot.passed and slot.has_tensor and slot.name not in keywords
        if i < count
        else not slot.has_tensor
        for i, slot in enumerate(slots)
    )


class _Argument:
    """An argument of a call, taken apart."""

    __slots__ = ("leaves", "name", "passed", "tree")

    def __init__(self, name: str, value: Any, passed: bool) -> None:
        self.name = name
        self.passed = passed
        self.leaves: list[Any] = [value]
        self.tree: tree.Tree | None = None
        if tree.is_container(value) and not (name == "self" and _leaves_self(value)):
            leaves, structure = tree.flatten(value)
            if any(hosts.role(type(leaf)) not in (Role.STATIC, Role.NUMBER) for leaf in leaves):
                self.leaves, self.tree = leaves, structure
            # else a shape, a list of axes: a static as a whole


def _leaves_self(value: Any) -> bool:
    """Tell whether what a method reaches through `self` counts as captured on the host of such objects."""
    return bool(getattr(hosts.opener(value), "leaves_self", False))


def _bound(
    rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[_Argument], frozenset[str]]:
    """List the arguments in the order of the signature, and name those that go by keyword."""
    try:
        bound = rule.signature.bind(*args, **kwargs)
    except TypeError as error:  # Python's own sentence, with the name of the function put before it
        raise TypeError(f"{rule.where}: {error}") from None
    passed = set(bound.arguments)
    bound.apply_defaults()
    positional: list[_Argument] = []
    keyword: list[_Argument] = []
    for name, value in bound.arguments.items():
        kind = rule.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional += [_Argument(f"{name}[{i}]", part, True) for i, part in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            keyword += [_Argument(key, part, True) for key, part in value.items()]
        else:
            group = keyword if kind is inspect.Parameter.KEYWORD_ONLY else positional
            group.append(_Argument(name, value, name in passed))
    return positional + keyword, frozenset(argument.name for argument in keyword)


def _host(rule: Rule, found: Sequence[_Argument], roles: Sequence[Host | Role]) -> tuple[Host, Role]:
    """Find the host of a call, and what beside its own tensors is a tensor there."""
    owners = [argument.name for argument in found for _ in argument.leaves]
    owned = [(role, owner) for role, owner in zip(roles, owners) if not isinstance(role, Role)]
    if not owned:
        wanted = Role.ARRAY if Role.ARRAY in roles else Role.NUMBER
        if wanted not in roles:
            _refuse_no_tensor(rule, found)
        return hosts.default(rule.function), wanted
    host, owner = owned[0]
    for other, name in owned:
        if other is not host:
            raise HostError.about(
                rule.where,
                found=f"`{owner}` is a {host.name} tensor and `{name}` a {other.name} tensor",
                expected="tensors of one framework in one call",
                fix="convert one of them first",
            )
    return host, Role.ARRAY


def _refuse_no_tensor(rule: Rule, found: Sequence[_Argument]) -> NoReturn:
    """Say that nothing in a call can be differentiated."""
    listed = ", ".join(f"{a.name}={type(a.leaves[0]).__name__}" for a in found if a.leaves)
    numbers = [a.name for a in found if a.leaves and type(a.leaves[0]) is int]
    why = "ints, strings, callables and None are statics: there is nothing to differentiate"
    fix = f"write {numbers[0]} as a float or a tensor" if numbers else "pass a tensor"
    for argument, kind, framework, inside in _hidden(found):
        names = ", ".join(f"{argument}.{field}" for field in inside)
        why = f"{framework} knows no structure `{kind}`: the tensors in it are not seen"
        fix = f"pass {names}, or register `{kind}` with {framework}"
    raise NoTensorError.about(
        rule.where,
        found=f"no argument is a tensor ({listed or 'no arguments'})",
        expected="at least one tensor, variable, NumPy array or float",
        why=why,
        fix=fix,
    )


def _hidden(found: Sequence[_Argument]) -> Iterator[tuple[str, str, str, list[str]]]:
    """List the arguments that are objects with tensors in them: name, type, framework, and which fields."""
    for argument in found:
        fields = getattr(argument.leaves[0], "__dict__", {}) if argument.leaves else {}
        owners = {name: hosts.role(type(value)) for name, value in fields.items()}
        inside = {name: owner for name, owner in owners.items() if not isinstance(owner, Role)}
        if inside:
            first = next(iter(inside.values()))
            yield argument.name, type(argument.leaves[0]).__name__, first.name, list(inside)


def _hashable(static: Any) -> Any:
    try:
        hash(static)
    except TypeError:
        return repr(static)
    return static
