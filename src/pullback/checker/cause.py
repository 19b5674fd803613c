"""A cause: the named reason of a wrong gradient, and how causes are searched.

One file in `causes/` is one cause: a slug, a rank (lower is asked first), and `search(evidence)`. The
first that explains every wrong input wins; when none does, nothing is guessed. A name that misleads is
worse than none: what a shrunken input suggests is said only if it holds at the failing point itself, with
the numbers that are measured there. A cause that fails to compute costs the cause, not the verdict.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, replace
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
    small: bool = False  # seen on a smaller input than the one that failed, which is too large to tell


@lru_cache(maxsize=1)
def causes() -> tuple[ModuleType, ...]:
    """Discover the causes, in the order in which they are asked."""
    from pullback.checker import causes as package

    modules = [
        importlib.import_module(f"{package.__name__}.{m.name}")
        for m in pkgutil.iter_modules(package.__path__)
    ]
    return tuple(sorted(modules, key=lambda m: (m.RANK, m.SLUG)))


def search(
    evidence: Evidence, whole: Evidence | None = None, *, explaining: str = "derivative"
) -> Match | None:
    """Ask every cause for all wrong inputs together, then for each alone.

    `whole` is the failing point where the evidence is of a smaller one. `explaining` is the property that
    fails: a cause speaks of the derivative, unless its `EXPLAINS` says more.
    """
    found = ask(evidence, whole, explaining)
    if found is not None or len(evidence.wrong_inputs) < 2:
        return found
    parts = [(p, None if whole is None else whole.only(p)) for p in evidence.wrong_inputs]
    asked_of = {p: ask(evidence.only(p), larger, explaining) for p, larger in parts}
    matches = [m for m in asked_of.values() if m is not None]
    if not matches:
        return None
    first = matches[0]
    said = "; ".join(dict.fromkeys(m.sentence for m in matches))
    rest = [evidence.name(p) for p, m in asked_of.items() if m is None]
    said += f"; that of {listed(rest)} is wrong, too" if rest else ""
    edits = "; ".join(dict.fromkeys(m.edit for m in matches))
    return Match(first.slug, said, edits, ", ".join(m.where for m in matches))


def ask(evidence: Evidence, whole: Evidence | None, explaining: str) -> Match | None:
    """Ask every cause and give the first that fits and is confirmed."""
    for module in causes():
        if explaining not in getattr(module, "EXPLAINS", ("derivative",)):
            continue
        found = asked(module, evidence)
        if found is not None and getattr(module, "CONFIRM", False) and not confirmed(module, evidence):
            continue
        if found is not None and whole is not None:
            found = held(module, found, whole)
        if found is not None:
            return found
    return None


def asked(module: ModuleType, evidence: Evidence) -> Match | None:
    """Ask one cause."""
    try:
        found: Match | None = module.search(evidence)
    except Exception:  # a user's function may fail in any way where nobody ran it before
        return None
    return found


def held(module: ModuleType, found: Match, whole: Evidence) -> Match | None:
    """Ask the same cause at the failing point: sizes and factors are those measured there.

    Where the point is too large to tell, what was seen on the smaller one is said with its shapes, unless
    what the rule claims there speaks against it: its `denied`.
    """
    there = asked(module, whole)
    if there is not None:
        return there if there.slug == found.slug else None
    if not whole.blind or module.SLUG == "constant-factor":
        return None
    return None if getattr(module, "denied", lambda *_: False)(found, whole) else replace(found, small=True)


def confirmed(module: ModuleType, evidence: Evidence) -> bool:
    """Ask the same cause at another point: a coincidence of values does not repeat."""
    other = evidence.elsewhere()
    if other is None:
        return True
    return bool(other.wrong_inputs) and asked(module, other) is not None


def listed(names: list[str]) -> str:
    """Write names as a person would."""
    quoted = [f"`{n}`" for n in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]
