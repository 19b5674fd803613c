"""How many bits of the gradient are right in the dtype that is shipped?"""

from __future__ import annotations

import numpy as np

from pullback.checker.draw import cotangents
from pullback.checker.finding import Answer, Finding, can
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.dtypes import double, is_real_or_complex
from pullback.view.subject import Arrays, Cotangents, Subject

LOST = 0.1  # of a gradient: beyond it, its formula has lost its digits


@probe(rank=110, skip_when_wrong=True, in_shipped_dtype=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare with float64 at the same rounded inputs, and with plain autodiff in the same dtype."""
    unit = roundoff([x for x, d in zip(subject.inputs, subject.differentiable) if d])
    if unit < 1e-12 or subject.astype is None or subject.intent.kind == "differs" or subject.draws:
        return []
    fine = subject.astype("float64")
    if fine is None:
        return []
    name = next(x.dtype.name for x, d in zip(subject.inputs, subject.differentiable) if d)
    given = cotangents(subject, settings.rng(17))
    wide: Arrays = tuple(c.astype(double(c.dtype)) for c in given)
    try:
        reference, claimed = fine.pullback(fine.inputs, wide), subject.pullback(subject.inputs, given)
        plain = subject.body_pullback(subject.inputs, given) if subject.body_pullback else None
        values = (subject.forward(subject.inputs), fine.forward(fine.inputs))
    except Exception:  # the contract probe says so
        return []
    error = worst(claimed, reference)
    if error is None:
        return []
    bits = -np.log2(max(error, unit / 4))
    near = min(1e3 * unit, LOST)
    good = plain is not None and (worst(plain, reference) or np.inf) < near
    value_error = worst(values[0], values[1])
    if error > LOST and (value_error is None or value_error > LOST):
        return []  # another function in float64: one that draws numbers by dtype, for instance
    if error > LOST and good and value_error is not None and value_error < near:
        return can(
            "precision",
            name,
            "no",
            f"in {name} the gradient is off by {error:.1g}, where plain autodiff is right: "
            "the formula cancels",
            "wrong",
            cause="precision-lost",
            edit="rewrite the formula without the cancellation",
            where=name,
            inputs=subject.inputs,
            cotangents=given,
        )
    answer: Answer = "yes" if error < LOST else "no"
    return can("precision", name, answer, f"{name}: {bits:.0f} bits right", resolution=max(error, unit))


def worst(found: Cotangents, reference: Cotangents) -> float | None:
    """Give the norm-wise relative error, or None when it means nothing."""
    error = 0.0
    for a, b in zip(found, reference):
        if a is None or b is None or not is_real_or_complex(a.dtype):
            continue
        x, y = a.astype(np.complex128), b.astype(np.complex128)
        if x.shape != y.shape or not np.isfinite(x).all() or not np.isfinite(y).all():
            return None
        size = float(np.linalg.norm(y))
        if size:
            error = max(error, float(np.linalg.norm(x - y)) / size)
    return error
