"""Acting when a module is imported, and not before.

A script may set environment variables before it imports its framework, or import none at all; so the
recorder must not import it first.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any, act: Callable[[ModuleType], None]) -> None:
        self.loader = loader
        self.act = act

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self.loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.act(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self.name = name
        self.act = act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self.act)
                return spec
        return None


def when_imported(name: str, act: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Run `act(module)` once a module is there, now or later; gives a function that takes the order back."""
    known = sys.modules.get(name)
    if known is not None:
        act(known)
        return lambda: None
    finder = _Finder(name, act)
    sys.meta_path.insert(0, finder)

    def withdraw() -> None:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)

    return withdraw
