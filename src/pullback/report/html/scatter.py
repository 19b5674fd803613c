"""Claimed against measured gradient: on the line they agree."""

from __future__ import annotations

import math

from pullback.report.html.axis import axis_of, framed, place
from pullback.report.html.shapes import BOTTOM, LEFT, RIGHT, TOP, Dot, Picture
from pullback.report.html.values import Values


def scatter(data: Values) -> Picture:
    """Draw one point an entry."""
    claimed, measured = data.numbers("claimed"), data.numbers("measured")
    entries, apart = data.texts("entries"), set(data.places("apart"))
    what = "second derivative" if data.order == 2 else "gradient"
    picture = Picture("scatter", f"Claimed against measured {what}")
    total = int(data.number("total"))
    count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    if total > len(entries):
        count = f"{len(entries)} of {total:,} entries, the worst of those measured among them"
    picture.note = f"{count}; measured by {data.text('oracle')}. On the line both agree."
    values = [*claimed, *measured]
    x, y = axis_of(values, LEFT, RIGHT), axis_of(values, BOTTOM, TOP)
    framed(picture, x, y, "measured", "claimed")
    picture.line(x(x.low), y(x.low), x(x.high), y(x.high), "diagonal")
    kinds = {"good": "agrees", "bad": "differs", "lost": "not finite"}
    for i, (name, c, m) in enumerate(zip(entries, claimed, measured)):
        if math.isfinite(m):
            kind = "lost" if not math.isfinite(c) else "bad" if i in apart else "good"
            at = float(TOP) if kind == "lost" else y(c)
            said = f"{name}\nclaimed {place(c)}\nmeasured {place(m)}"
            size = 3.0 if kind == "good" else 3.6
            picture.dots.append(Dot(round(x(m), 1), round(at, 1), kind, said, size))
    # What differs is on top: one entry of a thousand must be seen.
    picture.dots.sort(key=lambda dot: list(kinds).index(dot.kind))
    seen = {dot.kind for dot in picture.dots}
    picture.legend = [(kind, meaning) for kind, meaning in kinds.items() if kind in seen]
    return picture
