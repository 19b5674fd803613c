"""The derivative from 10⁻²⁰ to 10²⁰ and their negatives: by the rule, and by plain autodiff of its body."""

from __future__ import annotations

import math

from pullback.report.html.axis import axis_of, framed, place
from pullback.report.html.shapes import BOTTOM, LEFT, RIGHT, TOP, Box, Dot, Path, Picture, through
from pullback.report.html.values import Values


def stability(data: Values) -> Picture:
    """Draw both derivatives over the decades, and mark where one is not finite."""
    at, claimed, plain = (data.numbers(name) for name in ("at", "claimed", "autodiff"))
    name = data.text("input")
    picture = Picture("stability", "Stability over 40 decades")
    x = axis_of(at, LEFT, RIGHT, 40)
    y = axis_of([*claimed, *plain], BOTTOM, TOP + 24, 24)
    framed(picture, x, y, name, "derivative")
    lost = [sum(not math.isfinite(v) for v in series) for series in (claimed, plain)]
    rule, autodiff = (f"{n} of {len(at)} values" if n else "none" for n in lost)
    picture.note = f"In {data.text('dtype')}. Not finite by plain autodiff: {autodiff}; by the rule: {rule}."
    sides = [[i for i, v in enumerate(at) if (v < 0) is below] for below in (True, False)]
    for series, kind in ((plain, "autodiff"), (claimed, "claimed")):
        for side in sides:
            points = [(x(at[i]), y(series[i])) if math.isfinite(series[i]) else None for i in side]
            if any(points):
                picture.paths.append(Path(through(points), kind))
        for i, value in enumerate(series):
            if not math.isfinite(value):
                rail = TOP + (2 if kind == "claimed" else 10)
                picture.dots.append(Dot(round(x(at[i]), 1), rail, f"lost {kind}", "not finite", 2.2))
    width = (RIGHT - LEFT) / max(len(at), 1)
    for i, value in enumerate(at):
        text = f"{name} = {place(value)}\nrule {place(claimed[i])}\nautodiff {place(plain[i])}"
        left = round(x(value) - width / 2, 1)
        picture.boxes.append(Box(left, TOP, round(width, 1), BOTTOM - TOP, "hover", text))
    picture.legend = [("claimed", "the rule"), ("autodiff", "plain autodiff of the body")]
    if any(lost):
        picture.legend.append(("lost", "dots above: not finite"))
    return picture
