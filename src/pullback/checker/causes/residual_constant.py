"""The second derivative misses what comes through a residual: it was treated as a constant."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence

SLUG = "residual-constant"
RANK = 46


def search(evidence: Evidence) -> Match | None:
    """In the second order, ask whether only the derivative with respect to the inputs is wrong."""
    if evidence.order != 2 or not evidence.wrong_inputs:
        return None
    names = [evidence.name(p) for p in evidence.wrong_inputs]
    if any(n.startswith("cotangent") for n in names):
        return None
    return Match(
        SLUG,
        f"the second derivative with respect to {listed(names)} misses what comes through a residual, "
        "which was treated as a constant (stop_gradient, NumPy, or an opaque call)",
        "compute the residual from the inputs with differentiable operations, inside `grad` or in the body",
        listed(names),
    )
