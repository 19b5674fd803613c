"""Compilers that read Python: what they read in the place of the code that runs a rule.

PyTorch's compiler follows Python, instruction by instruction, and would follow the binding of arguments and
the contract too. It runs a function that is marked as constant, instead of reading it: so `being_read` can
tell, and `prepare` can import what is needed. Nothing is imported before somebody compiles, and rules older
than the framework work too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Function = Callable[..., Any]


class Whole:
    """Hold a rule as a compiler takes it: as a function that it does not look into."""

    def __init__(self) -> None:
        self.function: Function | None = None
        self.calls: list[Function] = []
        self.codes: list[tuple[Any, ...]] = []  # the functions among the arguments, one tuple per call

        def prepare(*codes: Any) -> int:
            for i, known in enumerate(self.codes):
                if len(known) == len(codes) and all(a is b for a, b in zip(known, codes)):
                    return i
            made = import_module("pullback.hosts.torch.compiling").marked(self.function, codes)
            self.calls.append(made)
            self.codes.append(codes)
            return len(self.calls) - 1

        prepare._dynamo_marked_constant = True  # type: ignore[attr-defined]
        self.prepare = prepare


def being_read() -> bool:
    """Tell whether a compiler asks this, and not the program."""
    return str(sys._getframe(1).f_globals.get("__name__")).startswith("torch._dynamo")


being_read._dynamo_marked_constant = True  # type: ignore[attr-defined]


def read(whole: Whole, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a rule as a whole."""
    # A function among the arguments is part of the code that is compiled, and not of its data; so is None.
    index = whole.prepare(*[a for a in (*args, *kwargs.values()) if _is_code(a)])
    places = [_is_code(a) for a in (*args, *kwargs.values())]
    given = [0 if _is_code(a) else a for a in args]
    named = {name: 0 if _is_code(a) else a for name, a in kwargs.items()}
    return whole.calls[index](places, given, named)


def _is_code(value: Any) -> bool:
    return value is None or (callable(value) and not hasattr(value, "named_parameters"))
