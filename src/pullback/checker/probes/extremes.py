"""Does the gradient stay finite and right where plain autodiff does not?"""

from __future__ import annotations

import numpy as np

from pullback.checker.directions import signed
from pullback.checker.finding import Finding
from pullback.checker.numeric import derivative_test
from pullback.checker.oracle import body_gradient
from pullback.checker.points import own_points
from pullback.checker.probe import probe
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.view.subject import Subject


@probe(rank=120, skip_when_wrong=True, in_shipped_dtype=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Look at extreme points for a rule that is right where autodiff is not."""
    if subject.body_pullback is None or subject.intent.kind == "differs" or not settings.own_points:
        return []
    sentence = overflow(subject, settings)
    if sentence:
        return [Finding("extremes", "note", sentence, reason="autodiff fails", point="huge")]
    for point in own_points(subject, settings.rng(5), extreme_only=True):
        try:
            problem = Problem.of(subject.at(point.inputs))
            v = signed(settings.rng(18), problem.y.size)
            plain, claimed = body_gradient(subject, problem, v), problem.gradient(v)
        except Exception:  # neither need exist at a point nobody asked for
            continue
        if plain is None or np.isfinite(plain).all() or not np.isfinite(claimed).all():
            continue
        bad = problem.x[~np.isfinite(plain)]
        if derivative_test(problem, settings.rng(19), settings).verdict == "right":
            sentence = f"the rule is right and autodiff of the body is not: it is not finite at {bad[0]:.4g}"
            return [Finding("extremes", "note", sentence, reason="autodiff fails", point=point.label)]
    return []


SIZES = (8.0, 20.0, 60.0, 100.0, 300.0)


def overflow(subject: Subject, settings: Settings) -> str:
    """Find the size from which autodiff of the body fails in the shipped dtype and the rule does not.

    The judge is autodiff of the body in float64, where that is still finite.
    """
    moving = [k for k, d in enumerate(subject.differentiable) if d]
    body = subject.body_pullback
    fine = subject.astype("float64") if subject.astype is not None and len(moving) == 1 else None
    judge = None if fine is None else fine.body_pullback
    if body is None or fine is None or judge is None or roundoff([subject.inputs[moving[0]]]) < 1e-12:
        return ""
    (k,) = moving

    def gradients(size: float) -> tuple[bool, bool]:
        """Tell whether plain autodiff is finite, and whether the rule is right, at one size."""
        inputs, wide = (
            tuple(np.full(x.shape, size).astype(x.dtype) if i == k else x for i, x in enumerate(given))
            for given in (subject.inputs, fine.inputs)
        )
        outputs = subject.forward(inputs)
        drawn = tuple(np.asarray(settings.rng(20).uniform(0.5, 1.5, y.shape)) for y in outputs)
        rounded = tuple(v.astype(y.dtype) for v, y in zip(drawn, outputs))
        exact = tuple(v.astype(y.dtype) for v, y in zip(drawn, fine.forward(wide)))
        found = (body(inputs, rounded)[k], subject.pullback(inputs, rounded)[k], judge(wide, exact)[k])
        plain, claimed, true = (np.array(np.nan) if g is None else g.astype(np.complex128) for g in found)
        right = np.isfinite(true).all() and np.allclose(claimed, true, rtol=2e-2, atol=1e-6)
        return bool(np.isfinite(plain).all()), bool(right)

    for sign, relation in ((1.0, "≥"), (-1.0, "≤")):
        for good, size in zip((1.0, *SIZES), SIZES):
            try:
                finite, right = gradients(sign * size)
                if not finite and right:
                    low, high = good, size
                    for _ in range(12):
                        middle = (low + high) / 2
                        low, high = (middle, high) if gradients(sign * middle)[0] else (low, middle)
                    said = f"not finite at {subject.names[k]} {relation} {sign * high:.4g}"
                    return f"the rule is right and autodiff of the body is not: {said}"
            except Exception:  # a function may refuse a size in any way it likes
                break
    return ""
