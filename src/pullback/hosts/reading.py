"""Compilers that read Python: what they read in the place of the wrapper around a rule.

PyTorch's compiler follows Python, instruction by instruction, and would follow the binding of arguments and
the contract too. Two attributes that it looks at, and that cost nothing where nobody compiles, make it read
another function instead: `_read`, which runs `_prepare` for good while it is read, and then calls the rule as
a whole. So nothing is imported before somebody compiles, and rules older than the framework work too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

Function = Callable[..., Any]

_functions: WeakValueDictionary[str, Any] = WeakValueDictionary()
_count = itertools.count()


class _Whole:
    """Hold a rule as a compiler takes it: a function that it does not look into."""

    def __init__(self) -> None:
        self.calls: list[Function] = []
        self.codes: list[tuple[Any, ...]] = []  # the functions among the arguments, one tuple per call


def let_compilers_read(function: Function) -> None:
    """Give a compiler the operation as a whole to read, and not the code that runs it."""
    # A compiled program looks up again what it was compiled for, by a path that starts at the wrapper. A
    # global of a name of its own is found from anywhere; a closure cell is looked for in the wrong function.
    name = f"_whole_{next(_count)}"
    code = _read.__code__
    names, constants = (
        tuple(name if n == "_WHOLE" else n for n in parts) for parts in (code.co_names, code.co_consts)
    )
    _functions[name] = function
    function._torchdynamo_inline = FunctionType(  # type: ignore[attr-defined]
        code.replace(co_names=names, co_consts=constants), globals(), "_read"
    )


_WHOLE = _Whole()


def _read(*args: Any, **kwargs: Any) -> Any:
    # A function among the arguments is part of the code that is compiled, and not of its data; so is None.
    index = _prepare("_WHOLE", *[a for a in (*args, *kwargs.values()) if _is_code(a)])
    places = [_is_code(a) for a in (*args, *kwargs.values())]
    given = [0 if _is_code(a) else a for a in args]
    named = {name: 0 if _is_code(a) else a for name, a in kwargs.items()}
    return _WHOLE.calls[index](places, given, named)


def _is_code(value: Any) -> bool:
    if isinstance(value, (dict, list, tuple)):  # torch.compile cannot tell whether one can be called
        return False
    return value is None or (callable(value) and not hasattr(value, "named_parameters"))


def _prepare(name: str, *codes: Any) -> int:
    """Make the call that the compiler takes as a whole, and tell its index."""
    whole: _Whole = globals().setdefault(name, _Whole())
    for i, known in enumerate(whole.codes):
        if len(known) == len(codes) and all(a is b for a, b in zip(known, codes)):
            return i
    made = import_module("pullback.hosts.torch.compiling").marked(_functions[name], codes)
    whole.calls.append(made)
    whole.codes.append(codes)
    return len(whole.calls) - 1


_prepare._dynamo_marked_constant = True  # type: ignore[attr-defined]
