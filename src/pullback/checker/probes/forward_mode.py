"""Does forward mode agree with reverse mode? ⟨v, J u⟩ = ⟨Jᵀ v, u⟩."""

from __future__ import annotations

import numpy as np

from pullback.checker.directions import relative, signed
from pullback.checker.finding import Finding, can
from pullback.checker.probe import probe
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.errors import DerivativeError, HostError
from pullback.view.subject import Subject

REFUSALS = (HostError, DerivativeError, NotImplementedError)  # what is not offered is no mistake


@probe(rank=70, skip_when_wrong=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Run the dot test with the host's pushforward."""
    if subject.pushforward is None or not any(subject.differentiable):
        return []
    rng = settings.rng(12)
    try:
        problem = Problem.of(subject)
        v = signed(rng, problem.y.size)
        g = problem.gradient(v)
    except Exception:  # the contract probe says so
        return []
    u = np.where(problem.still(), 0.0, relative(rng, problem.x))
    tangents = list(subject.inputs)
    for k, part in zip(problem.chosen, problem.domain.unpack(u)):
        tangents[k] = part
    try:
        pushed = subject.pushforward(subject.inputs, tuple(tangents))
    except Exception as error:  # a host may refuse forward mode in any way it likes
        if subject.pushes and not isinstance(error, REFUSALS):
            said = f"the pushforward fails: {type(error).__name__}: {error}".splitlines()[0][:200]
            return can("forward_mode", "forward", "no", said, "wrong", cause="forward-mode", where="forward")
        return can("forward_mode", "forward", "refused", f"no forward mode: {type(error).__name__}")
    along = problem.codomain.pack(pushed)
    if not np.isfinite(g).all() or not np.isfinite(problem.y).all():
        return []
    if not np.isfinite(along).all() and not subject.pushes:
        return []
    left, right = float(v @ along), float(g @ u)
    scale = max(float(np.linalg.norm(v * along)), float(np.linalg.norm(g * u)), 1e-300)
    rounding = 1e3 * problem.unit * np.sqrt(problem.x.size + problem.y.size)
    if abs(left - right) <= max(rounding, settings.rtol or 0.0) * scale:
        return can("forward_mode", "forward", "yes", "forward mode agrees with reverse mode")
    claimed = subject.forward_mode_claimed
    said = "forward mode gives another derivative than reverse mode"
    return can(
        "forward_mode",
        "forward",
        "no",
        said if claimed else f"{said} (the host ignores the rule there)",
        "wrong" if claimed and subject.intent.kind == "exact" else "note",
        cause="forward-mode" if claimed else None,
        where="forward",
        measured=left,
        claimed=right,
    )
