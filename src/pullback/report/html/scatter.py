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
    total = data.number("total")
    picture.note = (
        f"{len(entries)} entries"
        if total == len(entries)
        else (f"{len(entries)} of {total:,.0f} entries, the worst of those measured among them")
    )
    picture.note += f"; measured by {data.text('oracle')}. On the line both agree."
    values = [*claimed, *measured]
    x, y = axis_of(values, LEFT, RIGHT), axis_of(values, BOTTOM, TOP)
    framed(picture, x, y, "measured", "claimed")
    picture.line(x(x.low), y(x.low), x(x.high), y(x.high), "diagonal")
    for i, (name, c, m) in enumerate(zip(entries, claimed, measured)):
        if not math.isfinite(m):
            continue
        kind = "bad" if i in apart or not math.isfinite(c) else "good"
        at = y(c) if math.isfinite(c) else float(TOP)
        said = f"{name}\nclaimed {place(c)}\nmeasured {place(m)}"
        picture.dots.append(Dot(round(x(m), 1), round(at, 1), kind, said))
    picture.legend = [("good", "agrees"), ("bad", "differs")] if apart else [("good", "agrees")]
    return picture
