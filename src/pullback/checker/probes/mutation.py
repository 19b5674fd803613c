"""Do the forward and the pullback leave their arguments alone?"""

from __future__ import annotations

import numpy as np

from pullback.checker.draw import cotangents
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.view.subject import Subject


@probe(rank=100, anew=True)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Compare inputs and cotangents before and after."""
    given = cotangents(subject, settings.rng(16))
    before = (*subject.inputs, *given)
    inputs, given = (tuple(np.array(a) for a in arrays) for arrays in (subject.inputs, given))
    try:
        (subject.sharing_pullback or subject.pullback)(inputs, given)
    except Exception:  # the contract probe says so
        return []
    names = [*subject.names, *(f"the cotangent of output {k}" for k in range(len(given)))]
    changed = [n for n, a, b in zip(names, before, (*inputs, *given)) if np.array(a).tobytes() != b.tobytes()]
    if not changed:
        return []
    return [
        Finding(
            "mutation",
            # A running mean is meant to be changed, and so is what a declared rule writes into.
            "wrong" if subject.is_rule and subject.intent.kind != "differs" else "note",
            f"the call changes {', '.join(changed)} in place",
            "mutation",
            "work on a copy",
            where=changed[0],
        )
    ]
