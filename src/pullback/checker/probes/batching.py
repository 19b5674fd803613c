"""Is the Jacobian computed in one go the same as row by row?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.checker.draw import near, rounding
from pullback.checker.finding import Finding, can
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import Space, roundoff
from pullback.view.subject import Cotangents, Pullback, Subject

ROWS = 4
SIZE = 256


@probe(rank=90, skip_when_wrong=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare a few rows of the host's Jacobian with pullbacks of unit cotangents."""
    where = subject.words.batching
    outputs = subject.forward(subject.inputs)
    space = Space.of(outputs)
    if (
        subject.jacobian is None
        or not 0 < space.size <= SIZE
        or any(o.dtype.kind == "c" for o in (*outputs, *subject.inputs))
    ):
        return []
    try:
        subject.pullback(subject.inputs, outputs)
    except Exception:  # the contract probe says so
        return []
    try:
        whole = subject.jacobian(subject.inputs)
    except Exception as error:  # a host may refuse to batch in any way it likes
        return can("batching", where, "refused", f"no {where}: {type(error).__name__}")
    rows = [int(row) for row in settings.rng(14).permutation(space.size)[:ROWS]]
    if not mixed(subject, space, whole, subject.pullback, rows):
        return can("batching", where, "yes", "the jacobian agrees row by row")
    said = "the jacobian computed in one go differs from row by row"
    if framework_mixes(subject, space, rows):
        said += ", that of plain autodiff too: an operation of the framework mixes the rows"
        return can("batching", where, "no", said, where=where)
    return can(
        "batching",
        where,
        "no",
        said,
        "wrong" if subject.is_rule else "note",
        cause="batching-differs",
        edit="look for operations that mix the rows of a batch of cotangents",
        where=where,
        inputs=subject.inputs,
    )


def mixed(
    subject: Subject, space: Space, whole: Sequence[Cotangents], pullback: Pullback, rows: Sequence[int]
) -> bool:
    """Tell whether one of these rows of a Jacobian is not what the pullback gives for it."""
    tolerance = rounding(roundoff(space.unpack(np.zeros(space.size))))
    for row in rows:
        k, index = space.where(row)
        single = pullback(subject.inputs, space.unpack(np.eye(1, space.size, row)[0]))
        for g, block in zip(single, whole[k]):
            if g is not None and block is not None and not near(block[index], g, rtol=tolerance):
                return True
    return False


def framework_mixes(subject: Subject, space: Space, rows: Sequence[int]) -> bool:
    """Tell whether the same happens to plain autodiff of the body, which nobody here wrote."""
    if subject.body_jacobian is None or subject.body_pullback is None:
        return False
    try:
        whole = subject.body_jacobian(subject.inputs)
        return mixed(subject, space, whole, subject.body_pullback, rows)
    except Exception:  # the body need not be differentiable
        return False
