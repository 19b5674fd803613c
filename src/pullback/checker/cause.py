"""A cause: the named reason of a wrong gradient, and how causes are searched.

One file in `causes/` is one cause: a slug, a rank (lower is asked first), and `search(evidence)`. The
first that explains every wrong input wins; when none does, nothing is guessed.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

from pullback.checker.evidence import Evidence


@dataclass(frozen=True)
class Match:
    """Hold a cause that fits: its slug, what is wrong in one sentence, where, and the edit it suggests."""

    slug: str
    sentence: str
    edit: str = ""
    where: str = ""


@lru_cache(maxsize=1)
def causes() -> tuple[ModuleType, ...]:
    """Discover the causes, in the order in which they are asked."""
    from pullback.checker import causes as package

    modules = [
        importlib.import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    return tuple(sorted(modules, key=lambda m: (m.RANK, m.SLUG)))


def search(evidence: Evidence) -> Match | None:
    """Ask every cause for all wrong inputs together, then for each alone."""
    found = ask(evidence)
    if found is not None or len(evidence.wrong_inputs) < 2:
        return found
    matches = [m for m in (ask(evidence.only(place)) for place in evidence.wrong_inputs) if m is not None]
    if not matches:
        return None
    first = matches[0]
    said = "; ".join(dict.fromkeys(m.sentence for m in matches))
    edits = "; ".join(dict.fromkeys(m.edit for m in matches))
    return Match(first.slug, said, edits, ", ".join(m.where for m in matches))


def ask(evidence: Evidence) -> Match | None:
    """Ask every cause and give the first that fits."""
    for module in causes():
        found: Match | None = module.search(evidence)
        if found is not None and (not getattr(module, "CONFIRM", False) or confirmed(module, evidence)):
            return found
    return None


def confirmed(module: ModuleType, evidence: Evidence) -> bool:
    """Ask the same cause at another point: a coincidence of values does not repeat."""
    other = evidence.elsewhere()
    if other is None:
        return True
    again: Match | None = module.search(other) if other.wrong_inputs else None
    return again is not None


def listed(names: list[str]) -> str:
    """Write names as a person would."""
    quoted = [f"`{n}`" for n in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]
