"""One call of a rule: its arguments bound to the signature, and the tensors found in them.

The invariant: `tensors` lists every tensor of the call once per place where it stands, in the order of the
signature, whether it came by position, by keyword, by default or inside a structure; and `forward` gives the
body exactly the arguments it was called with, those tensors put in their places. Python's own calling
convention thus ends here, and hosts see a flat list.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from pullback import contract, hosts, takes, tangent, tree
from pullback.errors import HostError, NoTensorError
from pullback.hosts import Role
from pullback.hosts.base import Cotangents, Host, Operation, Pullback, Tensor
from pullback.rule import Intent, Rule

_NONE: dict[str, Any] = {}


class Slot:
    """The place of one argument: its name, its structure, and where its tensors are in the flat list."""

    __slots__ = ("leaves", "name", "passed", "places", "tree")

    def __init__(self, name: str, leaves: list[Any], structure: tree.Tree | None, passed: bool) -> None:
        self.name = name
        self.leaves = leaves
        self.tree = structure
        self.passed = passed
        self.places: list[int | None] = []  # per leaf: its index among the tensors, or None for a static

    @property
    def has_tensor(self) -> bool:
        return any(place is not None for place in self.places)


class Call:
    """Bind a rule to the arguments of one call. This is an `Operation` of `hosts.base`."""

    __slots__ = (
        "_keywords",
        "_slots",
        "count",
        "flat",
        "host",
        "output_tree",
        "rule",
        "statics",
        "symbolic",
        "tensors",
    )

    def __init__(self, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.rule = rule
        self.symbolic = False
        self._keywords: tuple[str, ...] = ()
        names = rule.plain
        self.flat = False  # whether the arguments are tensors and nothing else
        if names is not None and not kwargs and rule.required <= len(args) <= len(names):
            host = hosts.role(type(args[0])) if args else Role.STATIC
            if not isinstance(host, Role) and host.plain(args):
                self.flat = True
                self.host: Host = host
                self.tensors: Sequence[Tensor] = list(args)
                self.count = len(args)  # a host may take the tensors themselves away, to keep them elsewhere
                self._slots: list[Slot] | None = None
                return
        self._bind(args, kwargs)
        self._find_tensors()

    @property
    def slots(self) -> list[Slot]:
        """The places of the arguments; for a flat call made only when somebody asks for them."""
        if self._slots is None:
            assert self.rule.plain is not None
            count = self.count
            self._slots = [Slot(name, [None], None, i < count) for i, name in enumerate(self.rule.plain)]
            for place, slot in enumerate(self._slots):
                slot.places.append(place if place < count else None)
        return self._slots

    # ── arguments ────────────────────────────────────────────────────────────────────────────────────────

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            bound = self.rule.signature.bind(*args, **kwargs)
        except TypeError as error:  # Python's own sentence, with the name of the function put before it
            raise TypeError(f"{self.rule.where}: {error}") from None
        passed = set(bound.arguments)
        bound.apply_defaults()
        positional: list[Slot] = []
        keyword: list[Slot] = []
        for name, value in bound.arguments.items():
            kind = self.rule.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                positional += [_slot(f"{name}[{i}]", part, True) for i, part in enumerate(value)]
            elif kind is inspect.Parameter.VAR_KEYWORD:
                keyword += [_slot(key, part, True) for key, part in value.items()]
            elif kind is inspect.Parameter.KEYWORD_ONLY:
                keyword.append(_slot(name, value, name in passed))
            else:
                positional.append(_slot(name, value, name in passed))
        self._slots = positional + keyword
        self._keywords = tuple(slot.name for slot in keyword)

    def _find_tensors(self) -> None:
        host: Host | None = None
        owner = ""
        roles: list[Host | Role] = []
        for slot in self.slots:
            for leaf in slot.leaves:
                role = hosts.role(type(leaf))
                roles.append(role)
                if not isinstance(role, Role):
                    if host is None:
                        host, owner = role, slot.name
                    elif role is not host:
                        raise HostError.about(
                            self.rule.where,
                            found=f"`{owner}` is a {host.name} tensor and `{slot.name}` a {role.name} tensor",
                            expected="tensors of one framework in one call",
                            fix="convert one of them first",
                        )
        self.symbolic = Role.SYMBOL in roles
        if self.symbolic:  # a place in a Keras model: there is nothing to run yet
            return
        wanted: tuple[Role, ...] = (Role.ARRAY,)
        if host is None:
            if Role.ARRAY not in roles:
                wanted = (Role.NUMBER,)
                if Role.NUMBER not in roles:
                    _refuse_no_tensor(self.rule, self.slots)
            host = hosts.default(self.rule.function)
        self.host = host
        tensors: list[Tensor] = []
        kinds = iter(roles)
        for slot in self.slots:
            for i, leaf in enumerate(slot.leaves):
                role = next(kinds)
                if role is host or role in wanted:
                    slot.places.append(len(tensors))
                    tensors.append(host.tensor(leaf, where=self.rule.where, argument=slot.name))
                    slot.leaves[i] = None  # the body gets the tensor; a variable or array is not kept
                else:
                    slot.places.append(None)
        self.tensors, self.count = tensors, len(tensors)

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
            elif skipped or slot.name in self._keywords:
                kwargs[slot.name] = self._value(slot, tensors)
            else:
                args.append(self._value(slot, tensors))
        return args, kwargs

    @staticmethod
    def _value(slot: Slot, tensors: Sequence[Any]) -> Any:
        leaves = [leaf if place is None else tensors[place] for leaf, place in zip(slot.leaves, slot.places)]
        return tree.unflatten(slot.tree, leaves)

    # ── the operation ────────────────────────────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def where(self) -> str:
        return self.rule.where

    @property
    def order(self) -> int | None:
        return self.rule.order

    @property
    def intent(self) -> Intent:
        return self.rule.intent

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
        """Run the body; keep of its outputs only what the pullback needs."""
        rule = self.rule
        args, kwargs = (tensors, _NONE) if self.flat else self.arguments(tensors)
        return self.ran(tensors, self.host.run(rule.body, args, kwargs, rule.where))

    def ran(self, tensors: Sequence[Tensor], result: Any) -> tuple[list[Tensor], Pullback]:
        """Take what the body returned apart into its outputs and the pullback."""
        host, rule = self.host, self.rule
        if type(result) is tuple and len(result) == 2 and contract.takes_one(result[1]):
            outline = host.lone(result[0])
            if outline is not None:  # nearly every call ends here
                self.output_tree, self.statics = None, contract.ONE
                return [result[0]], CallPullback(self, tensors, result[1], "whole", [outline])
        outputs, grad = contract.split(result, rule)
        if host.is_tensor(outputs):
            leaves, self.output_tree = [outputs], None
        else:
            leaves, self.output_tree = tree.flatten(outputs)
        self.statics, flat = contract.tensor_outputs(leaves, host, rule, tensors)
        spread = contract.spread(grad, self.output_tree, rule)
        return flat, CallPullback(self, tensors, grad, spread, list(map(host.outline, flat)))

    def pushforward(
        self, tensors: Sequence[Tensor], tangents: Sequence[Tensor], outputs: Sequence[Tensor] = ()
    ) -> list[Tensor] | None:
        """Run the user's pushforward: one tangent per tensor argument, then the arguments.

        The outputs of the run are for one that takes them.
        """
        function = self.rule.pushforward
        if function is None:
            return None
        args, kwargs = self.arguments(tensors)
        moving = [self._value(slot, tangents) for slot in self.slots if slot.has_tensor]
        tangent.require_takes(function, [*moving, *args], kwargs, self.rule)
        if outputs:
            kwargs = {**kwargs, "output": self.result(outputs)}
        returned = self.host.run(function, [*moving, *args], kwargs, self.where)
        return tangent.settle(returned, self.output_tree, self.statics, self.rule, function, self.host)

    @property
    def has_pushforward(self) -> bool:
        return self.rule.pushforward is not None

    @property
    def pushes_output(self) -> bool:
        """Tell whether the pushforward takes the outputs of the run too."""
        return getattr(self.rule.pushforward, "takes_output", False)

    @property
    def identity(self) -> Any:
        return self.rule.identity

    @property
    def memo(self) -> dict[Any, Any]:
        return self.rule.memo

    def key(self, extra: Any) -> Any:
        return (extra, *(_hashable(leaf) for slot in self.slots for leaf in slot.leaves))

    def second(self, count: int) -> Operation:
        from pullback.second import Second

        return Second(self, count)

    def captured(self) -> Iterable[tuple[str, Any]]:
        return self.rule.captured()

    def result(self, outputs: Sequence[Tensor]) -> Any:
        """Give the caller the structure that the body returned, with the recorded outputs in it."""
        if self.statics is contract.ONE and self.output_tree is None:
            return outputs[0]
        recorded = iter(outputs)
        leaves = [next(recorded) if static is contract.TENSOR else static for static in self.statics]
        return tree.unflatten(self.output_tree, leaves)


class CallPullback:
    """Run the user's `grad` on cotangents of the outputs."""

    __slots__ = ("call", "grad", "outlines", "spread", "tensors")

    def __init__(
        self,
        call: Call,
        tensors: Sequence[Tensor],
        grad: Callable[..., Any],
        spread: contract.Spread,
        outlines: Sequence[Any],
    ) -> None:
        self.call = call
        self.tensors = tensors
        self.grad = grad
        self.spread = spread
        self.outlines = outlines

    def zeros(self) -> list[Tensor]:
        return [self.call.host.zeros(outline) for outline in self.outlines]

    def require(self, variables: Sequence[Any]) -> None:
        contract.require_variables(self.grad, variables, self.call)

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        call = self.call
        leaves = list(cotangents)
        for i, cotangent in enumerate(leaves):
            if cotangent is None:
                leaves[i] = call.host.zeros(self.outlines[i])
        if call.output_tree is not None:
            leaves = contract.spread_cotangents(self.spread, call.output_tree, call.statics, leaves)
        kwargs = {"variables": list(variables)} if variables else {}
        try:
            returned = call.host.run(self.grad, leaves, kwargs, call.rule.where)
        except TypeError as error:
            found = takes.mismatch(self.grad, leaves, kwargs, error)
            if not found:
                raise
            raise contract.grad_signature(found, len(leaves), call.rule) from error
        if call.flat and not variables:  # the common case: a cotangent per argument, each as it should be
            given = list(returned) if type(returned) is tuple else [returned]
            if len(given) == len(self.tensors) and call.host.fit(given, self.tensors):
                return Cotangents(given, [])
        return contract.settle(returned, call, self.tensors, variables, self.grad)


def _slot(name: str, value: Any, passed: bool) -> Slot:
    if tree.is_container(value) and not (name == "self" and _leaves_self(value)):
        leaves, structure = tree.flatten(value)
        if any(hosts.role(type(leaf)) not in (Role.STATIC, Role.NUMBER) for leaf in leaves):
            return Slot(name, leaves, structure, passed)
        # a shape, a list of axes: a static as a whole
    return Slot(name, [value], None, passed)


def _leaves_self(value: Any) -> bool:
    """Tell whether what a method reaches through `self` counts as captured on the host of such objects."""
    return bool(getattr(hosts.opener(value), "leaves_self", False))


def _hashable(static: Any) -> Any:
    try:
        hash(static)
    except TypeError:
        return repr(static)
    return static


def _refuse_no_tensor(rule: Rule, slots: Sequence[Slot]) -> NoReturn:
    """Say that nothing in a call can be differentiated."""
    found = ", ".join(f"{slot.name}={type(slot.leaves[0]).__name__}" for slot in slots if slot.leaves)
    numbers = [slot.name for slot in slots if slot.leaves and type(slot.leaves[0]) is int]
    raise NoTensorError.about(
        rule.where,
        found=f"no argument is a tensor ({found or 'no arguments'})",
        expected="at least one tensor, variable, NumPy array or float",
        why="ints, strings, callables and None are statics: there is nothing to differentiate",
        fix=f"write {numbers[0]} as a float or a tensor" if numbers else "pass a tensor",
    )
