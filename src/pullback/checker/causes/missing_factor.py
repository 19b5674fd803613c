"""A factor that varies is missing or one too many: the output, an input, a norm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.view.subject import Array

SLUG = "missing-factor"
RANK = 64
CONFIRM = True


def factors(evidence: Evidence, place: int) -> Iterator[tuple[str, Array]]:
    """List what a derivative of this input may be multiplied with."""
    x = evidence.shaped(evidence.problem.x, place)
    for p in range(evidence.count):
        a = evidence.shaped(evidence.problem.x, p)
        if a.shape in (x.shape, ()):
            yield f"`{evidence.name(p)}`", a
            yield f"`{evidence.name(p)}`²", a * a
    for k, y in enumerate(evidence.outputs):
        if y.shape in (x.shape, ()) or (y.ndim == x.ndim - 1 and x.shape[: y.ndim] == y.shape):
            name = "the output" if len(evidence.outputs) == 1 else f"output {k}"
            wide = y if y.shape in (x.shape, ()) else y[..., None]
            yield name, wide
            yield f"the square of {name}", wide * wide
            with np.errstate(over="ignore"):
                yield f"the exponential of {name}", np.exp(wide)


def search(evidence: Evidence) -> Match | None:
    """Fit claim = truth · φ or claim · φ = truth, up to a constant that is one."""
    wrong = evidence.wrong_inputs
    if evidence.true is None or not wrong or any(np.iscomplexobj(evidence.array(p)) for p in wrong):
        return None
    said = []
    for p in wrong:
        t = np.stack([evidence.shaped(g, p) for g in evidence.true])
        c = np.stack([evidence.shaped(g, p) for g in evidence.claimed])
        for name, factor in factors(evidence, p):
            scaled = np.broadcast_to(factor, t.shape[1:])
            if not np.isfinite(scaled).all() or (np.ptp(scaled) == 0 and scaled.size > 1 and factor.shape):
                continue
            for sign, minus in ((1, ""), (-1, "minus ")):
                if evidence.close(sign * c * scaled, t, 10):
                    said.append(f"a factor {minus}{name} is missing")
                elif evidence.close(sign * t * scaled, c, 10):
                    said.append(f"a factor {minus}{name} is one too many")
                else:
                    continue
                break
            else:
                continue
            break
    if len(said) < len(wrong):
        return None
    names = listed([evidence.name(p) for p in wrong])
    return Match(SLUG, f"in the gradient of {names} {said[0]}", f"look at the formula: {said[0]}", names)
