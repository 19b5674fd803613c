"""Probes: one question each, one file each in `probes/`, found by their presence there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from pullback.checker.finding import Finding
from pullback.checker.settings import Settings
from pullback.view.subject import Subject

# One that takes long gives what it has found as soon as it has: a body may never return at the next point.
Ask = Callable[[Subject, Settings], Iterable[Finding]]


@dataclass(frozen=True)
class Probe:
    """Hold one question, and when it is asked."""

    ask: Ask
    rank: int  # questions are asked in this order
    skip_when_wrong: bool = False  # what a wrong rule can do besides is of no use yet
    on_request: bool = False  # asked only by name
    in_shipped_dtype: bool = False  # of the rule as it ships; the others are asked in float64
    anew: bool = False  # every question is put to the rule itself; the others may be told what it gave before


def probe(
    *,
    rank: int,
    skip_when_wrong: bool = False,
    on_request: bool = False,
    in_shipped_dtype: bool = False,
    anew: bool = False,
) -> Callable[[Ask], Probe]:
    """Make a function the question of its file."""

    def made(ask: Ask) -> Probe:
        return Probe(ask, rank, skip_when_wrong, on_request, in_shipped_dtype, anew)

    return made


@lru_cache(maxsize=1)
def probes() -> dict[str, Probe]:
    """Discover the probes by their `question`, in the order in which they are asked."""
    from pullback.checker import probes as package

    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    found: dict[str, Probe] = {
        name: importlib.import_module(f"{package.__name__}.{name}").question for name in names
    }
    return dict(sorted(found.items(), key=lambda item: (item[1].rank, item[0])))
