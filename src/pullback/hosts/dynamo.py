"""Compilers that read Python: what they read in the place of the code that runs a rule.

PyTorch's compiler follows Python, instruction by instruction, and would follow the binding of arguments and
the contract too. It runs a function that is marked as constant, instead of reading it: so `is_tracing` can
tell, and `prepare` can import what is needed. Nothing is imported before somebody compiles, and rules older
than the framework work too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

Function = Callable[..., Any]


class Opaque:
    """Hold a rule as a compiler takes it: as a function that it does not look into."""

    def __init__(self) -> None:
        self.function: Function | None = None
        self._count = 0

        def prepare(*codes: Any) -> str:
            made = import_module("pullback.hosts.torch.compiling").Taken(self.function, codes)
            for name in [name for name in vars(self) if name.startswith("taken_")]:
                known = getattr(self, name)
                if known.gone:
                    delattr(self, name)
                elif known.serves(made):
                    return name
            self._count += 1
            name = f"taken_{self._count}"  # an attribute, and no list: PyTorch guards on the length of one
            setattr(self, name, made)
            return name

        prepare._dynamo_marked_constant = True  # type: ignore[attr-defined]
        self.prepare = prepare


PROGRAM: list[Any] = []  # a list, because Dynamo makes one of its own in the place of each that it reads


def is_tracing(asking: list[Any]) -> bool:
    """Tell whether Dynamo reads the code that asks with `PROGRAM`: what it hands over is another list.

    Every call of a rule asks. To look at the frame that does would cost as much as a small operation.
    """
    return asking is not PROGRAM


is_tracing._dynamo_marked_constant = True  # type: ignore[attr-defined]


def called_whole(opaque: Opaque, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a rule as an operation that Dynamo does not look into."""
    values = (*args, *kwargs.values())
    # A function or object among the arguments is part of what is compiled, and not of its data.
    hidden = [not _is_module(value) and _is_code(value) for value in values]
    codes = [value for value, hides in zip(values, hidden) if hides] + modules_of(values)
    taken = getattr(opaque, opaque.prepare(*codes))
    inputs: list[Any] = []
    for reader in taken.readers:
        inputs += reader(codes, _equal, _same, len, list, hasattr)
    given = [0 if hides else value for hides, value in zip(hidden, args)]
    named = {name: 0 if hides else kwargs[name] for hides, name in zip(hidden[len(args) :], kwargs)}
    result = None if taken.refused else taken.call(hidden, given, named, inputs)
    return taken.eager(*args, **kwargs) if taken.failed() else result


def _equal(value: Any) -> None:
    """Have a compiler guard on a number, also where it would keep its value open."""
    hash(value)


def _same(value: Any) -> None:
    """Have a compiler guard on which object this is."""
    id(value)


def _is_code(value: Any) -> bool:
    return value is None or not _is_data(type(value))


def _is_data(kind: type) -> bool:
    return import_module("pullback.hosts.torch.compiling").is_data(kind)


_is_data._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _is_module(value: Any) -> bool:
    return not isinstance(value, (dict, list, tuple)) and hasattr(value, "named_parameters")


class Counter:
    """Hold a variable that is written to, and not read: to a rule it is a static, to a compiler an input."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable


def modules_of(values: Iterable[Any]) -> list[Any]:
    """List the modules among arguments, and in structures of them."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += modules_of(value)
        elif isinstance(value, dict):
            found += modules_of(value.values())
        elif _is_module(value):
            found.append(value)
    return found
