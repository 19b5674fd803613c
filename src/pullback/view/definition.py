"""What a user wrote: what tells it from other functions, its name, and where it stands.

Rules made anew in every call of a factory share their code, so they are one.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

from pullback.rule import Intent, name_of, written


class Definition:
    """Describe a function of a user's, or the rule that was made of it."""

    framework = ""  # empty for what runs on any
    kind = "function"  # who made the rule, as a user writes it
    intent: Intent | None = None  # a claim that the maker states
    fixed: tuple[int, ...] = ()  # the places of arguments that it differentiates past
    signature: inspect.Signature | None = None  # how it is called, where what is called does not tell

    def __init__(self, user: Any) -> None:
        self.user = user
        self.key = identity(user)
        self.module = str(getattr(user, "__module__", "") or "")
        self.name = name_of(user if hasattr(user, "__name__") else inner(user))
        self.place = place_of(user)

    def kept(self) -> tuple[Any, Any]:
        """Give what is called and what the user wrote, as far as both may outlive the call."""
        return self.user, self.user


class Own(Definition):
    """Describe a rule of this library."""

    kind = "pullback"

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.name = function.rule.name


def identity(body: Any) -> Any:
    """Name the code that runs."""
    function = inner(body)
    return getattr(function, "__code__", None) or id(function)


def inner(body: Any) -> Any:
    """Give the function that the user wrote, behind methods, rules, decorators and partial arguments."""
    while True:
        function = written(getattr(body, "__func__", body))
        if isinstance(function, functools.partial):
            body = function.func
        elif function is body or not hasattr(function, "rule"):
            return function
        else:  # a rule around another one
            body = function


def place_of(body: Any) -> tuple[str, int]:
    """Give the file and line of a function, or nothing when it has no Python source."""
    code = getattr(inner(body), "__code__", None)
    return ("", 0) if code is None else (os.path.abspath(code.co_filename), code.co_firstlineno)


def importing(function: Any, spelled: str) -> str:
    """Give the line that imports what code spells so, or nothing where no line does."""
    name, *rest = spelled.split(".")
    user = inner(getattr(function, "__self__", function))
    module = sys.modules.get(str(getattr(user, "__module__", "") or ""))
    held = functools.reduce(lambda part, step: getattr(part, step, None), rest, getattr(module, name, None))
    if module is None or (held is not function and (not rest or held != function)):
        return ""
    file = str(getattr(module, "__file__", "") or "")
    where = os.path.splitext(os.path.basename(file))[0] if module.__name__ == "__main__" else module.__name__
    return f"from {where} import {name}" if where.replace(".", "_").isidentifier() else ""
