"""The pictures of a rule: one file draws one kind. What is damaged in the data is not drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback.report.html.heat import heat
from pullback.report.html.scatter import scatter
from pullback.report.html.shapes import Picture
from pullback.report.html.slice import slice_of
from pullback.report.html.stability import stability
from pullback.report.html.values import Values

KINDS = {"scatter": scatter, "heat": heat, "slice": slice_of, "stability": stability}


def drawn(pictures: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Draw what a report holds."""
    found = []
    for data in pictures:
        draw = KINDS.get(str(data.get("kind"))) if isinstance(data, Mapping) else None
        if draw is None:  # of a later version
            continue
        try:
            found.append(draw(Values(data)))
        except (ValueError, IndexError, OverflowError, ZeroDivisionError):
            continue
    return found
