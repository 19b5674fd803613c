"""Probes: one question each, one file each in `probes/`, found by their presence there."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from types import ModuleType


@lru_cache(maxsize=1)
def probes() -> dict[str, ModuleType]:
    """Discover the probes, in the order in which they are asked."""
    from pullback.check import probes as package

    modules = [
        importlib.import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    return {m.__name__.rsplit(".", 1)[1]: m for m in sorted(modules, key=lambda m: (m.RANK, m.__name__))}
