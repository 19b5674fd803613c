"""The domain of a function: where the checker may go, and where nothing is ever asked of it.

A simulator means nothing at a negative radius, and may never return there. A domain is a pair of bounds for
every input, a pair for some by name, or a predicate. Framework-free: it sees NumPy arrays.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pullback.rule import shown_signature

Array: TypeAlias = "np.ndarray[Any, Any]"
Limits: TypeAlias = "tuple[tuple[float, float], ...]"  # of every input
EVERY = (-math.inf, math.inf)
EXPECTED = '(low, high), {"x": (low, high)}, or a function of the inputs that tells whether they are inside'


class DomainError(ValueError):
    """Something that is no domain; the text says what was found, and who asked for it adds where."""


@dataclass(frozen=True)
class Domain:
    """Hold bounds by the name of an input, "" for every floating one, or a predicate."""

    bounds: tuple[tuple[str, float, float], ...] = ()
    predicate: Callable[..., Any] | None = None

    @classmethod
    def of(cls, given: Any) -> Domain:
        """Read what a user wrote."""
        if isinstance(given, Domain):
            return given
        if callable(given):
            return cls(predicate=given)
        if isinstance(given, Mapping):
            if not given or not all(isinstance(name, str) and name for name in given):
                raise DomainError(f"domain={given!r}")
            return cls(tuple((name, *_pair(pair, f"domain[{name!r}]")) for name, pair in given.items()))
        return cls((("", *_pair(given, "domain")),))

    def limits(self, names: Sequence[str], inputs: Sequence[Array]) -> Limits:
        """Give the bounds of every input; a name that none has is an error."""
        found = [EVERY] * len(names)
        for wanted, low, high in self.bounds:
            places = [k for k, name in enumerate(names) if _is(name, wanted)]
            if wanted and not places:
                raise DomainError(f"domain names `{wanted}`, and the inputs are {', '.join(names)}")
            for k in places if wanted else range(len(names)):
                if wanted or inputs[k].dtype.kind in "fV":
                    found[k] = (low, high)
        return tuple(found)

    def holds(self, names: Sequence[str], inputs: Sequence[Array]) -> bool:
        """Ask the predicate, if there is one: by the names of the inputs if it has them, else in order."""
        if self.predicate is None:
            return True
        known = shown_signature(self.predicate)
        wanted = list(known.parameters) if known else []
        by_name = dict(zip(names, inputs))
        if wanted and all(name in by_name for name in wanted):
            return bool(np.all(self.predicate(**{name: by_name[name] for name in wanted})))
        return bool(np.all(self.predicate(*inputs)))

    def __str__(self) -> str:
        if self.predicate is not None:
            return f"{getattr(self.predicate, '__name__', 'the predicate')} is true"
        return ", ".join(f"{name or 'every input'} in [{low:g}, {high:g}]" for name, low, high in self.bounds)


def _is(name: str, wanted: str) -> bool:
    """Tell whether an input is the one that is named, or a part of it."""
    return name == wanted or name.startswith((f"{wanted}[", f"{wanted}."))


def _pair(given: Any, label: str) -> tuple[float, float]:
    numbers_only = isinstance(given, (tuple, list)) and all(
        isinstance(v, numbers.Real) and not isinstance(v, bool) for v in given
    )
    if not numbers_only or len(given) != 2 or not float(given[0]) < float(given[1]):
        raise DomainError(f"{label}={given!r}")
    return float(given[0]), float(given[1])


def inside(limits: Limits, inputs: Sequence[Array]) -> bool:
    """Tell whether every entry keeps its bounds; a NaN does not."""
    pairs = ((pair, x) for pair, x in zip(limits, inputs) if pair != EVERY and x.size)
    return all(bool((x >= low).all() and (x <= high).all()) for (low, high), x in pairs)


def folded(limits: Limits, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Mirror what lies outside into the bounds, so that a draw stays as irregular as it was."""
    return tuple(x if pair == EVERY else _mirrored(x, *pair) for x, pair in zip(inputs, limits))


def _mirrored(x: Array, low: float, high: float) -> Array:
    work = np.asarray(x, np.float64)
    if math.isinf(high):
        work = np.where(work < low, 2 * low - work, work)
    elif math.isinf(low):
        work = np.where(work > high, 2 * high - work, work)
    else:
        turn = np.mod(work - low, 2 * (high - low))
        mirrored = low + np.minimum(turn, 2 * (high - low) - turn)
        work = np.where((work < low) | (work > high), mirrored, work)
    rounded = np.clip(work, low, high).astype(x.dtype)
    # Rounding to a coarse dtype may step over a bound.
    wide = rounded.astype(np.float64)
    return np.where((wide < low) | (wide > high), x.dtype.type(_middle(low, high)), rounded).astype(x.dtype)


def _middle(low: float, high: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    return high - 1.0 if math.isinf(low) else low + 1.0 if math.isinf(high) else (low + high) / 2
