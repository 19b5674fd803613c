"""What tells two rules apart: their code, and what that code was given when it was made.

Two rules are one if their functions and gradients have the same code, and that code holds the same: closure
cells, default and partial arguments, and of an object the attributes that the code names. Numbers, strings
and functions count by what they are. A tensor counts by its shape and dtype, and by its value only if it is
a single number that nobody trains. So a rule made anew in every step stays one rule, and a factory that is
handed another number makes another one. The digest is the same in every process: a crash is survived by it.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import CodeType, ModuleType
from typing import Any

from pullback.record import frameworks
from pullback.rule import Rule, cells, names_in
from pullback.view.definition import GENERATED, Definition
from pullback.wrapping.function import External

NUMBERS = (bool, int, float, complex, Decimal, Fraction)
ATOMS = (*NUMBERS, str, bytes, type(None), type(...), range, slice, enum.Enum)
DTYPES = ("dtype", "DType")  # of every framework, by the name of the class
MOST = 400  # things looked at: what is held may be a whole program
LONGEST = 16  # entries of a list or dict that are looked at
DEEPEST = 12


@dataclass(frozen=True)
class Identity:
    """Name a rule in every process; `facts` are what its code holds, by name and in words."""

    key: str
    facts: Mapping[str, str]


def identity_of(known: Definition) -> Identity:
    """Say who a rule is."""
    reader = _Reader()
    found = reader.parts(known.parts())
    digest = hashlib.blake2b(repr((known.kind, found)).encode("utf-8", "replace"), digest_size=12)
    return Identity(digest.hexdigest(), reader.facts)


def static(value: Any) -> Any:
    """Name an argument that is no tensor: the same for two calls that are given the same."""
    return _Reader().read(value, "")


class _Reader:
    """Read one rule."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.met: dict[int, Any] = {}  # what is being read or was, kept alive so that no identity is reused
        self.left = MOST

    def parts(self, parts: Mapping[str, Any]) -> Any:
        return tuple((name, self.read(part, name)) for name, part in parts.items())

    def read(self, value: Any, name: str, names: frozenset[str] = frozenset(), depth: int = 0) -> Any:
        """Name a value by data; `names` are the attributes that whoever holds it looks up."""
        if isinstance(value, ATOMS):
            return self._atom(value, name, repr(value))
        if isinstance(value, (ModuleType, type)) or type(value).__name__ in DTYPES:
            return self._atom(value, name, _called(value))
        if id(value) in self.met:
            return "met", list(self.met).index(id(value))
        self.left -= 1
        if self.left < 0 or depth > DEEPEST:
            return ("beyond",)
        if (tensor := frameworks.told(value)) is not None:
            return self._atom(value, name, tensor)
        self.met[id(value)] = value
        read = functools.partial(self.read, names=names, depth=depth + 1)
        if isinstance(value, (tuple, list, set, frozenset, dict)):
            return self._container(value, name, read)
        if isinstance(value, functools.partial):
            names_of = getattr(getattr(value.func, "__code__", None), "co_varnames", ())
            named = {**dict(zip(names_of, value.args)), **value.keywords}
            rest = value.args[len(names_of) :]
            held = [(key, read(part, key)) for key, part in sorted(named.items())]
            return ("partial", read(value.func, name), held, read(rest, name))
        if isinstance(value, (staticmethod, classmethod)):
            return read(value.__func__, name)
        if inspect.ismethod(value):
            code = getattr(value.__func__, "__code__", None)
            mine = names_in(code) if code is not None else frozenset()
            return ("method", read(value.__func__, name), self.read(value.__self__, name, mine, depth + 1))
        if inspect.isfunction(value):
            return self._function(value, name, read)
        return self._object(value, name, names, read)

    def _atom(self, value: Any, name: str, text: str) -> Any:
        self.facts.setdefault(name, text)
        return type(value).__name__, text

    def _container(self, value: Any, name: str, read: Callable[..., Any]) -> Any:
        kind = type(value).__name__
        if isinstance(value, dict):
            items = list(value.items())[:LONGEST]
            return (kind, *((read(k, f"{name} keys"), read(v, f"{name}[{k!r:.20}]")) for k, v in items))
        parts = list(value)[:LONGEST] if isinstance(value, (tuple, list)) else sorted(map(repr, value))
        found = [read(part, f"{name}[{i}]") for i, part in enumerate(parts[:LONGEST])]
        return (kind, *found)

    def _function(self, function: Any, name: str, read: Callable[..., Any]) -> Any:
        rule = getattr(function, "rule", None)
        code = function.__code__
        if not isinstance(rule, Rule):
            self.facts.setdefault(name, _called(function))
        enclosed = dict(cells(function))
        if isinstance(rule, Rule):  # of what runs it, only the gradient of a replacement tells
            enclosed = {key: enclosed[key] for key in ("apply",) if key in enclosed} | {"rule": rule}
        mine = names_in(code)
        held = [(key, read(value, key, names=mine)) for key, value in enclosed.items()]
        given = [
            read(value, f"{name} defaults") for value in (function.__defaults__, function.__kwdefaults__)
        ]
        return ("function", _code(code), held, given)

    def _object(self, value: Any, name: str, names: frozenset[str], read: Callable[..., Any]) -> Any:
        kind = _called(type(value))
        if isinstance(value, Rule):
            return ("rule", *(read(part, key) for key, part in _told_of(value).items()))
        if isinstance(value, External):
            return ("external", read(value.roles, name), read(vars(value.options), "options"))
        for framework in frameworks.FRAMEWORKS.values():
            native = framework.natives.found(value)
            if native is not None:
                return (kind, *((key, read(part, key)) for key, part in native.parts().items()))
        wrapped = getattr(value, "__wrapped__", None) or getattr(value, "python_function", None)
        if callable(wrapped):  # compiled
            return (kind, read(wrapped, name))
        held = list(_attributes(value, names))
        call = inspect.getattr_static(type(value), "__call__", None)
        if not held and inspect.isfunction(call):  # it is called, and nothing else is looked up in it
            held = list(_attributes(value, names_in(call.__code__) | {"__call__"}))
        return (kind, *((key, read(part, f"{name}.{key}")) for key, part in held))


def _attributes(value: Any, names: Iterable[str]) -> Iterable[tuple[str, Any]]:
    """List what an object holds under the names that are looked up, without running a property of it."""
    for name in sorted(names):
        try:
            found = inspect.getattr_static(value, name)
        except AttributeError:
            continue
        if hasattr(type(found), "__get__") and not callable(found):
            slot = inspect.ismemberdescriptor(found)
            if not slot:
                continue
            found = getattr(value, name, None)
        yield name, found


def _told_of(rule: Rule) -> dict[str, Any]:
    """List what a rule is; what it remembers of its calls is no part of it."""
    return {
        "function": rule.body, "claim": (rule.intent.kind, rule.intent.reason), "like": rule.intent.function,
        "order": rule.order, "pushforward": rule.pushforward, "accuracy": rule.accuracy,
    }  # fmt: skip


def _called(value: Any) -> str:
    """Name a class, module, dtype or function as its user would."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return str(name if isinstance(name, str) else value).replace("<locals>.", "")


def _code(code: CodeType) -> Any:
    """Name code by where it stands and by what it does."""
    return _named(code, code.co_filename)  # code of two files may be equal


@functools.lru_cache(maxsize=4096)
def _named(code: CodeType, file: str) -> Any:
    constants = [
        _code(c) if isinstance(c, CodeType) else sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c)
        for c in code.co_consts
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars)
    digest = hashlib.blake2b(repr((code.co_code, constants, names)).encode(), digest_size=12).hexdigest()
    return GENERATED if GENERATED in file else file, code.co_firstlineno, code.co_name, digest
