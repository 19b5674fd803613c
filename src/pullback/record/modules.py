"""Every module of a folder or a package, and the rules that stand in one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from pullback.record.frameworks import FRAMEWORKS
from pullback.record.identity import identity_of
from pullback.record.sample import Recorded
from pullback.rule import Rule, written
from pullback.view.definition import Definition, Own
from pullback.view.native import Native

SKIPPED = ("__main__.py", "setup.py")


def files_of(folder: str) -> list[str]:
    """List the Python files below a folder, in a settled order, without hidden ones and caches."""
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "__pycache__")))
        found += [os.path.join(here, n) for n in sorted(names) if n.endswith(".py") and n not in SKIPPED]
    return found


def names_of(package: str) -> list[str]:
    """List a module and every module below it."""
    module = importlib.import_module(package)
    below = pkgutil.walk_packages(getattr(module, "__path__", []), f"{package}.", onerror=lambda name: None)
    return [package, *(m.name for m in below if not m.name.endswith(".__main__"))]


def load(name: str) -> ModuleType:
    """Import a module by its dotted name, or a file as the module that it is in its package."""
    if not os.path.isabs(name):
        return importlib.import_module(name)
    root, parts = os.path.dirname(name), [os.path.splitext(os.path.basename(name))[0]]
    while os.path.exists(os.path.join(root, "__init__.py")):
        root, package = os.path.split(root)
        parts.insert(0, package)
    if parts[-1] == "__init__":
        parts.pop()
    if root not in sys.path:
        sys.path.insert(0, root)
    dotted = ".".join(parts)
    known = sys.modules.get(dotted)
    spec = None
    if known is None:
        try:
            spec = importlib.util.find_spec(dotted)
        except (ImportError, ValueError):
            spec = None
        if spec is not None and spec.origin is not None and os.path.samefile(spec.origin, name):
            return importlib.import_module(dotted)
    elif getattr(known, "__file__", None) and os.path.samefile(str(known.__file__), name):
        return known
    # Another module has this name already: two test files may share one.
    spec = importlib.util.spec_from_file_location(f"{dotted}_{abs(hash(name)):x}", name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def rules_of(module: ModuleType, *, everything: bool = False) -> Iterator[Recorded]:
    """Find the rules that a module defines: its functions, and those of its classes that need no instance."""
    spaces: list[Mapping[str, Any]] = [vars(module)]
    spaces += [
        vars(c) for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__
    ]
    for space in spaces:
        for value in list(space.values()):
            function = value.__func__ if isinstance(value, staticmethod) else value
            if space is not spaces[0] and not isinstance(value, (staticmethod, type)):
                continue
            rule = _first(function, (framework.natives.found(function) for framework in FRAMEWORKS.values()))
            if rule is not None and (everything or _stands_in(rule, module)):
                yield rule


def is_method(rule: Recorded) -> bool:
    """Tell whether a rule was written in the body of a class, and waits for an instance."""
    function = written(rule.user or rule.function)
    outer = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
    if inspect.isclass(function) or not outer or outer.endswith("<locals>"):
        return False
    names = list(inspect.signature(function).parameters)
    return names[:1] in (["self"], ["cls"])


def as_rule(function: Any) -> Recorded:
    """Make the record of a function that was named, a rule or not."""
    natives = (framework.natives.named(function) for framework in FRAMEWORKS.values())
    return _first(function, natives) or _recorded(Definition(function))


def _first(value: Any, natives: Iterable[Native | None]) -> Recorded | None:
    """Make the record of a rule: ours, or one that a framework recognises."""
    if isinstance(getattr(value, "rule", None), Rule):
        own = Own(value)
        return _recorded(own) if own.gives else None
    return next((_recorded(native) for native in natives if native is not None), None)


def _recorded(known: Definition) -> Recorded:
    found = identity_of(known)
    return Recorded.of(known, found.key, found.facts)


def _stands_in(rule: Recorded, module: ModuleType) -> bool:
    file = os.path.abspath(getattr(module, "__file__", "") or "")
    return rule.module == module.__name__ or rule.path == file
