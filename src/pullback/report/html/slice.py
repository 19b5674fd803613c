"""The function along one entry, with two tangents at the point: of the rule, and of differences."""

from __future__ import annotations

import math

from pullback.report.html.axis import Axis, axis_of, framed, place
from pullback.report.html.shapes import BOTTOM, LEFT, RIGHT, TOP, Dot, Path, Picture, through
from pullback.report.html.values import Values


def slice_of(data: Values) -> Picture:
    """Draw the function and what the two gradients say of it."""
    steps, values = data.numbers("steps"), data.numbers("values")
    at, claimed, measured = (data.number(name) for name in ("at", "claimed", "measured"))
    entry = data.text("entry")
    what = "gradient" if data.order == 2 else "function"
    picture = Picture("slice", f"The {what} along {entry}")
    picture.note = (
        f"At {place(at)} the rule claims the slope {place(claimed)}; measured is {place(measured)}."
    )
    known = [(s, v) for s, v in zip(steps, values) if math.isfinite(v)]
    if len(known) < 2:
        raise ValueError("values")
    x = axis_of([*steps, at], LEFT, RIGHT)
    reach = max(abs(s - at) for s in steps) / 3
    seen = [v for _, v in known] + [
        k * reach * m for k in (-1, 1) for m in (claimed, measured) if math.isfinite(m)
    ]
    y = (
        Axis(min(seen), max(seen), BOTTOM - 8, TOP + 8)
        if max(seen) > min(seen)
        else axis_of(seen, BOTTOM, TOP)
    )
    framed(picture, x, y, entry, f"change of the {what}")
    points = [(x(s), y(v)) if math.isfinite(v) else None for s, v in zip(steps, values)]
    picture.paths.append(Path(through(points), "curve"))
    for slope, kind, whose in ((measured, "measured", "differences"), (claimed, "claimed", "the rule")):
        if math.isfinite(slope):
            tangent(picture, x, y, at, slope, kind, f"slope {place(slope)}, by {whose}")
    for s, v in known:
        said = f"{entry} = {place(s)}\nchange {place(v)}"
        picture.dots.append(Dot(round(x(s), 1), round(y(v), 1), "hover", said, 6))
    picture.dots.append(Dot(round(x(at), 1), round(y(0.0), 1), "point", f"{entry} = {place(at)}", 4))
    picture.legend = [("curve", what), ("measured", "tangent by differences")]
    if math.isfinite(claimed):
        picture.legend.append(("claimed", "tangent by the rule"))
    return picture


def tangent(picture: Picture, x: Axis, y: Axis, at: float, slope: float, kind: str, said: str) -> None:
    """Draw a line of a slope through the point, as far as the frame goes."""
    ends = []
    for end in (x.low, x.high):
        rise = slope * (end - at)
        limit = y.high if rise > 0 else y.low
        share = 1.0 if y.holds(rise) else limit / rise
        ends.append((x(at + (end - at) * share), y(rise * share)))
    picture.line(*ends[0], *ends[1], kind, said)
