"""The pullback as a function of its own: (inputs, cotangents) ↦ cotangents of the inputs.

Its derivative is the second order of the subject, so every test of the first order serves the second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.checker.draw import cotangents
from pullback.domain import EVERY
from pullback.view.subject import Array, Arrays, Cotangents, Subject


def second_subject(subject: Subject, rng: np.random.Generator, given: Arrays | None = None) -> Subject:
    """Lift a subject by one order; the cotangent, drawn if none is given, becomes an input."""
    given = cotangents(subject, rng) if given is None else given
    count = len(subject.inputs)
    outer = subject.second
    assert outer is not None
    # An output that is not finite is not asked of, as in the first order: its cotangent is zero, and stays.
    finite = [np.isfinite(y.astype(np.complex128)) for y in subject.forward(subject.inputs)]
    given = _masked(given, finite)
    # What the first order gives None for is a constant to the rule, so it is one to the second.
    first = {k: g for k, g in enumerate(subject.pullback(subject.inputs, given)) if g is not None}
    alive = list(first)
    if subject.intent.kind == "differs":  # so is what it gives nothing but zeros: JAX makes that of None
        alive = [k for k, g in first.items() if g.any()] or alive
    moves = tuple(moves and k in alive for k, moves in enumerate(subject.differentiable))
    if not alive:
        raise ValueError("no gradient flows to any input")

    def forward(inputs: Arrays) -> Arrays:
        found = subject.pullback(inputs[:count], _masked(inputs[count:], finite))
        return tuple(np.zeros_like(inputs[k]) if found[k] is None else _array(found[k]) for k in alive)

    def pullback(inputs: Arrays, weights: Arrays) -> Cotangents:
        laid: list[Array | None] = [None] * count
        for k, w in zip(alive, weights):
            laid[k] = w
        by_input, by_cotangent = outer(inputs[:count], _masked(inputs[count:], finite), tuple(laid))
        # A missing second derivative counts as zero in every sum the host builds with it: so it does here.
        of_inputs = [
            (np.zeros_like(x) if g is None else g) if d else None for g, x, d in zip(by_input, inputs, moves)
        ]
        rest = [np.zeros_like(x) if g is None else g for g, x in zip(by_cotangent, inputs[count:])]
        return (*of_inputs, *_masked(tuple(rest), finite))

    def is_inside(inputs: Arrays) -> bool:
        return subject.inside is None or subject.inside(inputs[:count])

    limits = None if subject.limits is None else (*subject.limits, *([EVERY] * len(given)))
    return Subject(
        limits=limits,
        inside=None if subject.inside is None else is_inside,
        name=f"gradient of {subject.name}",
        inputs=(*subject.inputs, *given),
        names=(*subject.names, *(f"cotangent {k}" for k in range(len(given)))),
        differentiable=(*moves, *([True] * len(given))),
        forward=forward,
        pullback=pullback,
        is_rule=subject.is_rule,
        explicit=subject.explicit,
        words=subject.words,
    )


def _masked(cotangents: Arrays, finite: Sequence[Array]) -> Arrays:
    return tuple(np.where(f, c, 0).astype(c.dtype) for c, f in zip(cotangents, finite))


def _array(value: Array | None) -> Array:
    assert value is not None
    return value
