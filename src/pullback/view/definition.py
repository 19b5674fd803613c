"""What a user wrote: what it is made of, whose it is, its name, and where it stands.

A rule belongs to whoever wrote its function or its gradient: a gradient that a user gives to a function of a
framework is the user's, and stands where the user wrote it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from pullback import hosts
from pullback.rule import Intent, Rule, cells, name_of, written

# Packages whose rules are nobody's to mend who runs the program.
PACKAGES = (*hosts.ROOTS, "pullback", "keras", "tf_keras", "equinox")
GENERATED = "__autograph_generated_file"  # what a `tf.function` runs in the place of its source
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Definition:
    """Describe a function of a user's, or the rule that was made of it."""

    framework = ""  # empty for what runs on any
    kind = "function"  # who made the rule, as a user writes it
    intent: Intent | None = None  # a claim that the maker states
    fixed: tuple[int, ...] = ()  # the places of arguments that it differentiates past
    signature: inspect.Signature | None = None  # how it is called, where what is called does not tell

    def __init__(self, user: Any) -> None:
        self.user = user
        self.module = module_of(user)

    # Read where they are asked for: most calls are of a rule that is known.
    @functools.cached_property
    def name(self) -> str:
        return qualified(self.user)

    @functools.cached_property
    def location(self) -> tuple[str, int]:
        return location_of(self.user)

    @property
    def gives(self) -> bool:
        """Tell whether there is a gradient at all."""
        return True

    @property
    def anchor(self) -> Any:
        """Give the object that is the rule: as long as it lives, it is the same rule."""
        return self.user

    def parts(self) -> dict[str, Any]:
        """List what the rule is made of: its function, its gradient, and what else tells it from others."""
        return {"function": self.user}

    def called_as(self, path: str) -> str:
        """Name an input as the user's function does, by its path in the arguments of the rule."""
        return path

    @property
    def owner(self) -> str:
        """Name the package that the rule is a part of; nothing where a user had a hand in it."""
        return package_of([self.module])

    @property
    def qualified(self) -> str:
        """Name it as an import does, in every process the same: `package.module.Class.name`."""
        return qualified_name(self.user, self.location[0])

    def kept(self) -> tuple[Any, Any]:
        """Give what is called and what the user wrote, as far as both may outlive the call."""
        return self.user, self.user


class Own(Definition):
    """Describe a rule of this library; `site` is the line that made it, where that was seen."""

    kind = "pullback"

    def __init__(self, function: Any, site: tuple[str, int] | None = None) -> None:
        super().__init__(function)
        self.site = site

    @functools.cached_property
    def name(self) -> str:
        return qualified(inner(self.user), self.user.rule.name)

    @functools.cached_property
    def given(self) -> list[Any]:
        return list(reached(self.user))

    @functools.cached_property
    def location(self) -> tuple[str, int]:
        if not package_of([module_of(inner(self.user))]):
            return location_of(self.user)
        mine = (location_of(f) for f in self.given if not package_of([module_of(f)]))
        return next(mine, self.site or location_of(self.user))

    @property
    def gives(self) -> bool:
        external = vars(self.user).get("external")  # a rule around one has it, too
        return external is None or external.rule is not self.user.rule or bool(external.has_gradient)

    @property
    def owner(self) -> str:
        # Nobody but a user gives a gradient to a function of a framework.
        return "" if self.given else "pullback"


def module_of(function: Any) -> str:
    """Name the module that a function was written in."""
    return str(getattr(function, "__module__", "") or "")


def package_of(modules: Iterable[str]) -> str:
    """Name the package that all of these modules are in, if nobody's own is among them."""
    roots = [module.partition(".")[0] for module in modules]
    return roots[0] if roots and all(root in PACKAGES for root in roots) else ""


def reached(value: Any) -> Iterator[Any]:
    """List the functions that were given to this library, behind all that it made of them."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        rule = getattr(value, "rule", None)
        if isinstance(rule, Rule):
            waiting += [rule.intent.function, rule.pushforward, rule.body]
        if isinstance(value, (tuple, list)):
            waiting += value
        elif isinstance(value, functools.partial):
            waiting.append(value.func)
        elif inspect.ismethod(value):
            waiting += getattr(value.__self__, "roles", {}).values()  # of an external function
            waiting.append(value.__func__)
        elif getattr(getattr(value, "__code__", None), "co_filename", "").startswith(HERE):
            waiting += [held for _, held in cells(value)]
        elif callable(value) and module_of(value).partition(".")[0] != "pullback":
            yield value


def qualified(function: Any, name: str = "") -> str:
    """Name a function with the class or function that it was written in; `name` is the last word of it."""
    known = function if hasattr(function, "__name__") else inner(function)
    name = name or name_of(known)
    path = str(getattr(known, "__qualname__", "")).replace("<locals>.", "")
    return path if path.rpartition(".")[2] == name else name


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


def location_of(body: Any) -> tuple[str, int]:
    """Give the file and line of a function, or nothing when it has no Python source."""
    code = getattr(inner(body), "__code__", None)
    if code is None or GENERATED in code.co_filename:
        return "", 0
    return os.path.abspath(code.co_filename), code.co_firstlineno


def location_of_class(kind: type, otherwise: tuple[str, int]) -> tuple[str, int]:
    """Give the file and line of a class; once, since before Python 3.13 its whole file is parsed for it."""
    if kind not in _classes:
        path, line = otherwise
        with contextlib.suppress(OSError, TypeError):
            line = kind.__dict__.get("__firstlineno__") or inspect.getsourcelines(kind)[1]
            path = os.path.abspath(inspect.getsourcefile(kind) or path)
        _classes[kind] = path, line
    return _classes[kind]


_classes: weakref.WeakKeyDictionary[type, tuple[str, int]] = weakref.WeakKeyDictionary()


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
