"""The gradient is another one on purpose, as far as can be measured, and nobody declared it."""

from __future__ import annotations

from pullback.checker.cause import Match, listed
from pullback.checker.evidence import Evidence
from pullback.checker.surrogate import how_to_declare, recognised

SLUG = "surrogate"
RANK = 1
EXPLAINS = ("derivative", "linearity")


def search(evidence: Evidence) -> Match | None:
    """Recognise a surrogate, and say how it is declared."""
    if evidence.order != 1 or evidence.subject.believes:  # what is around a declared one is compared with it
        return None
    found = recognised(evidence)
    if found is None:
        return None
    rest = [evidence.name(p) for p in evidence.wrong_inputs if p != found.place]
    also = f"; that of {listed(rest)} is not the derivative either" if rest else ""
    return Match(
        SLUG,
        f"looks like a surrogate: {found.seen}{also}",
        how_to_declare(evidence.subject.known_as, found.reason),
        evidence.name(found.place),
    )
