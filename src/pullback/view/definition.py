"""What a user wrote: what tells it from other functions, its name, and where it stands.

Rules made anew in every call of a factory share their code, so they are one.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
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

    @property
    def qualified(self) -> str:
        """Name it as an import does, in every process the same: `package.module.Class.name`."""
        return qualified_name(self.user, self.place[0])

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


def qualified_name(user: Any, path: str) -> str:
    """Name a function or class by its module; that of a script is the one that an import of it would have."""
    function = user if hasattr(user, "__qualname__") and not hasattr(user, "rule") else inner(user)
    module = str(getattr(function, "__module__", "") or "")
    name = str(getattr(function, "__qualname__", "") or name_of(function)).replace("<locals>.", "")
    stem = os.path.splitext(os.path.basename(path))[0]
    # A script has another name while it runs, and so has a file whose name is taken.
    if path and (module.startswith("__") or re.fullmatch(rf"(.*\.)?{re.escape(stem)}_[0-9a-f]+", module)):
        module = module_name(path)
    return f"{module}.{name}" if module else name


def module_name(path: str) -> str:
    """Give the dotted name of a file in its package."""
    folder, file = os.path.split(path)
    parts = [os.path.splitext(file)[0]]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return ".".join(parts)
