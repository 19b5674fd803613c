"""What a graph is made of: frozen values without a framework in them, small whatever the tensors were.

An edge holds what one operation hands to another, and the gradient that comes back along it: the share of
this edge alone, so that of two users of a value the one that spoils its gradient can be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["input", "variable", "captured", "operation", "output", "folded"]
# `still`: no gradient is expected here: whole numbers, or nothing behind it that could have one.
State = Literal["flows", "zero", "none", "nan", "inf", "still", "unmeasured"]
BROKEN: tuple[State, ...] = ("nan", "inf")
LOST: tuple[State, ...] = ("none", "zero")


@dataclass(frozen=True)
class Flow:
    """Hold what is known of an array: how many entries, how large, and how many are zero, NaN or infinite."""

    size: int
    norm: float
    low: float
    high: float
    zero: int = 0
    nan: int = 0
    inf: int = 0

    @classmethod
    def of(cls, array: Any) -> Flow:
        """Measure an array of numbers."""
        found = np.asarray(array)
        kind = np.complex128 if found.dtype.kind == "c" else np.float64
        found = np.abs(found) if kind is np.complex128 else found.astype(kind)
        fine = found[np.isfinite(found)]
        low, high = (float(fine.min()), float(fine.max())) if fine.size else (float("nan"), float("nan"))
        nan, inf = int(np.isnan(found).sum()), int(np.isinf(found).sum())
        norm = float("nan") if nan else float("inf") if inf else _norm(fine)
        return cls(found.size, norm, low, high, int((found == 0).sum()), nan, inf)

    @property
    def state(self) -> State:
        """Say in a word what it is as a gradient."""
        if self.nan:
            return "nan"
        if self.inf:
            return "inf"
        return "zero" if self.size and self.zero == self.size else "flows"


def _norm(array: Any) -> float:
    """Give the Euclidean norm, where the squares alone would overflow or vanish, too."""
    most = float(np.abs(array).max(initial=0.0))
    return most * float(np.linalg.norm(array.ravel() / most)) if most else 0.0


@dataclass(frozen=True)
class Mark:
    """Say of a node that its gradient was written by somebody: who made the rule, and what it claims."""

    maker: str
    intent: Literal["exact", "surrogate", "differs"]
    says: str


@dataclass(frozen=True)
class Node:
    """Hold one operation, or one end of the graph."""

    id: int
    operation: str  # as the host names it
    name: str
    kind: Kind = "operation"
    does: str = ""  # the operation in a word that is the same on every host, where one is known
    scope: tuple[str, ...] = ()  # the modules, layers and name scopes around it, outermost first
    rule: Mark | None = None
    kept: int | None = None  # bytes that its gradient keeps of the forward; None where that is not known
    location: str = ""  # the line of the user's, `file.py:3`
    gradient: Flow | None = None  # of what it computes, all shares together; of the first output that has one
    inside: int = 0  # how many operations are folded into it
    bodies: tuple[Body, ...] = ()  # of a loop its rounds, of a condition the branches that may have run

    @property
    def is_source(self) -> bool:
        """Tell whether gradients end here."""
        return self.kind in ("input", "variable")


@dataclass(frozen=True)
class Body:
    """Hold what runs inside of an operation, unmeasured: a branch, or one round of a loop."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    entries: dict[int, int]  # where each operand of the operation comes in: its place → the node
    exits: dict[int, int]  # where each output of the operation is made: the node → its port
    again: dict[int, int]  # what a round hands to the next one: a port → a place


@dataclass(frozen=True)
class Edge:
    """Hold what flows from one node to another, and the gradient that comes back."""

    source: int
    target: int
    shape: tuple[int | None, ...] | None = None
    dtype: str = ""
    state: State = "unmeasured"
    value: Flow | None = None
    gradient: Flow | None = None
    port: int = 0  # which output of the source it is
    place: int = 0  # which operand of the target it is
    count: int = 1  # how many edges are drawn as this one


@dataclass(frozen=True)
class Culprit:
    """Name the operation that first spoils a gradient, going backward."""

    node: int
    state: State
    says: str
