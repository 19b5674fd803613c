"""The example arguments of a checked call: which leaves are inputs, and what they are called.

Tensors, variables and arrays are inputs; numbers, strings, callables and None stay fixed. A number is an
input only if nothing else is one, as in a call of a rule, and so is a list of numbers.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from pullback import tree
from pullback.view.definition import Definition, importing


def is_number_list(value: Any) -> bool:
    """Tell whether a value is a list of numbers that stands for an array."""
    if not isinstance(value, list):
        return False
    leaves, _ = tree.flatten(value)
    return (
        bool(leaves)
        and all(isinstance(v, (int, float, complex)) and not isinstance(v, bool) for v in leaves)
        and any(not isinstance(v, int) for v in leaves)
    )


def is_array(leaf: Any) -> bool:
    """Tell whether a leaf is an array of numbers of NumPy's."""
    return isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind not in "OSU"


@dataclass(frozen=True)
class Asked:
    """Say what a program asked of a call: nothing of the `still` leaves.

    `used` are the places of outputs that a cotangent came from, by the number of outputs. `built` makes of
    the arguments what is called with them: a tensor that stands inside another argument too.
    """

    still: tuple[Any, ...] = ()
    built: Callable[[list[Any]], list[Any]] | None = None
    used: Mapping[int, Collection[int]] = field(default_factory=dict)

    def is_still(self, leaf: Any) -> bool:
        """Tell whether no gradient is asked of a leaf."""
        return any(leaf is other for other in self.still)


EVERYTHING = Asked()


class Arguments:
    """Hold the arguments of one call, seen flat."""

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_input: Callable[[Any], bool],
        asked: Asked = EVERYTHING,
    ) -> None:
        self.asked = asked
        self.args, self.kwargs = args, kwargs
        if not any(map(is_input, tree.flatten([list(args), kwargs])[0])):
            self.args = tuple(np.asarray(a) if is_number_list(a) else a for a in args)
        self.leaves, self.tree = tree.flatten([list(self.args), kwargs])
        self.slots = [i for i, leaf in enumerate(self.leaves) if is_input(leaf)]
        if not self.slots:
            self.slots = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, (float, complex))]

    @property
    def wanted(self) -> list[bool]:
        """Tell of each input whether a gradient is asked of it."""
        return [not self.asked.is_still(leaf) for leaf in self.inputs]

    @property
    def inputs(self) -> list[Any]:
        """Give the leaves that are inputs."""
        return [self.leaves[i] for i in self.slots]

    def filled(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Give the arguments with other values in the places of the inputs."""
        leaves = list(self.leaves)
        for slot, value in zip(self.slots, values):
            leaves[slot] = value
        args, kwargs = tree.unflatten(self.tree, leaves)
        return args if self.asked.built is None else self.asked.built(args), kwargs

    def names(self, signature: inspect.Signature | None, native: Definition | None = None) -> list[str]:
        """Name the inputs after the parameters of the function, or of that which a native rule is made of."""
        labels: list[str] = []
        tops: list[str] = []
        if signature is not None:
            with contextlib.suppress(TypeError):
                bound = signature.bind(*self.args, **self.kwargs)
                for name, value in bound.arguments.items():
                    many = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
                    tops += [f"{name}[{i}]" for i in range(len(value))] if many else [name]
        for i, value in enumerate(self.args):
            labels += paths(tops[i] if tops else f"argument {i}", value)
        for key in tree.keys_of(self.kwargs):
            labels += paths(key, self.kwargs[key])
        named = [labels[i] for i in self.slots]
        return named if native is None else [*map(native.called_as, named)]

    def written(self, function: str, names: Sequence[str]) -> str:
        """Write the call as code, with names in the places of the inputs."""
        args, kwargs = self._named(names)
        parts = [_code(value, f"argument_{i}") for i, value in enumerate(args)]
        parts += [f"{key}={_code(value, key)}" for key, value in kwargs.items()]
        return f"{function}({', '.join(parts)})"

    def _named(self, names: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
        """Give the arguments with names in the places of the inputs."""
        leaves = list(self.leaves)
        for slot, name in zip(self.slots, names):
            leaves[slot] = _Name(name)
        args, kwargs = tree.unflatten(self.tree, leaves)
        return args, kwargs

    def imports(self, function: Any, name: str) -> tuple[str, ...]:
        """List the lines that import the function under its name, and the types of the arguments."""
        args, kwargs = self._named(["x"] * len(self.slots))
        needed = _needed([*args, *kwargs.values()])
        named = [(function, name), *((part, part.__qualname__) for part in needed)]
        return tuple(dict.fromkeys(filter(None, (importing(what, spelled) for what, spelled in named))))


def _needed(value: Any) -> Iterator[Any]:
    """List what code must import to write a value: its type, or the function or class that it is."""
    if tree.is_container(value):
        if tree.is_namedtuple(value) or not isinstance(value, (tuple, list, Mapping)):
            yield type(value)
        for _, part in _steps(value):
            yield from _needed(part)
    elif _is_named(value):
        yield value
    elif isinstance(value, Enum) or type(value).__name__ in (_names_in(repr(value)) or ()):
        yield type(value)


def _code(value: Any, name: str) -> str:
    """Write a value as code; one that shows itself in other words is named."""
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if _is_named(value):
        return str(value.__qualname__)
    text = repr(value)
    return name if _names_in(text) is None else text


def _names_in(text: str) -> list[str] | None:
    """List the names that a line of code reads; None for what is no code."""
    try:
        parsed = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return None
    return [node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)]


def _is_named(value: Any) -> bool:
    """Tell whether a value is a function or a class that a line imports."""
    name = getattr(value, "__qualname__", "")
    return isinstance(name, str) and bool(name and importing(value, name))


class _Name(str):
    """A name that is written as code, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def paths(label: str, value: Any) -> list[str]:
    """Name every leaf of an argument by its path."""
    if not tree.is_container(value):
        return [label]
    return [path for step, part in _steps(value) for path in paths(label + step, part)]


def _steps(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", value[key]) for key in tree.keys_of(value))
    elif tree.is_namedtuple(value):
        yield from ((f".{field}", part) for field, part in zip(value._fields, value))
    elif isinstance(value, (tuple, list)):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    else:  # a structure that only its host knows: its fields by name, where they can be told
        parts = tree.opened(value)[0]
        fields = list(getattr(value, "__dataclass_fields__", ()))
        named = [f for f in fields if any(getattr(value, f, None) is part for part in parts)]
        steps = (
            [f".{f}" for f in named] if len(named) == len(parts) else [f"[{i}]" for i in range(len(parts))]
        )
        yield from zip(steps, parts)
