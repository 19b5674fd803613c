"""The second derivative misses what comes through a residual: it was treated as a constant."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence

SLUG = "residual-constant"
RANK = 51


def search(evidence: Evidence) -> Match | None:
    """In the second order, ask whether only the derivative with respect to the inputs is wrong.

    A rule that says its second order itself has no residual to blame, and neither has a function without a
    rule.
    """
    if evidence.order != 2 or not evidence.wrong_inputs or not evidence.subject.is_rule:
        return None
    names = [evidence.name(p) for p in evidence.wrong_inputs]
    explicit = evidence.subject.explicit
    if any(n.startswith("cotangent") for n in names) or (explicit is not None and explicit()):
        return None
    absent = not any(evidence.part(c, p).any() for p in evidence.wrong_inputs for c in evidence.claimed)
    how = "stop_gradient, NumPy, or an opaque call"
    said = (
        f"is zero: it misses what comes through a residual, which was treated as a constant ({how})"
        if absent
        else f"misses what comes through a residual that was treated as a constant ({how}), or an operation "
        "inside `grad` has a wrong derivative of its own"
    )
    return Match(
        SLUG,
        f"the second derivative with respect to {listed(names)} {said}",
        "compute the residual from the inputs with differentiable operations, inside `grad` or in the body",
        listed(names),
    )
