"""The error over the shape of an input: no colour where it is right, full colour where all of it is wrong."""

from __future__ import annotations

import math

from pullback.report.html.axis import place
from pullback.report.html.shapes import Box, Picture, Text
from pullback.report.html.values import Values

LEFT, TOP, WIDTH, TALLEST, LARGEST = 56, 30, 368, 200, 40
SWATCHES = 7


def heat(data: Values) -> Picture:
    """Draw a cell an entry, or one for several of them."""
    rows, columns = data.texts("rows"), data.texts("columns")
    cells, shape = data.numbers("cells"), data.places("shape")
    if len(cells) != len(rows) * len(columns) or not cells:
        raise ValueError("cells")
    name, noise = data.text("input"), max(data.number("noise"), 1e-15)
    size = min(WIDTH / len(columns), TALLEST / len(rows), LARGEST)
    picture = Picture("heat", f"Error over the shape of {name}")
    if data.order == 2:
        picture.title = f"Error of the second derivative over the shape of {name}"
    picture.note = f"Shape {' × '.join(map(str, shape))}; the error as a share of the largest gradient."
    if max(cells) <= noise:
        picture.note = (
            f"Shape {' × '.join(map(str, shape))}; no entry differs by more than {noise:.0e} of the largest."
        )
    if data.flag("folded"):
        picture.note += " A cell shows the worst of several entries."
    for i, error in enumerate(cells):
        r, c = divmod(i, len(columns))
        at = ", ".join(part for part in (rows[r], columns[c]) if part)
        lost = not math.isfinite(error)
        said = f"{name}[{at}]\n" + ("not finite" if lost else f"error {place(error)}")
        x, y = round(LEFT + c * size, 1), round(TOP + r * size, 1)
        picture.boxes.append(
            Box(x, y, round(size, 1), round(size, 1), "void" if lost else "cell", said, share(error, noise))
        )
    low, right = TOP + len(rows) * size, LEFT + len(columns) * size
    for level, label in (
        (TOP + min(size, 28) / 2 + 4, first(rows)),
        (low - min(size, 28) / 2 + 4, last(rows)),
    ):
        picture.texts.append(Text(LEFT - 8, level, label, "end"))
    picture.texts.append(Text(LEFT + size / 2, TOP - 8, first(columns), "middle"))
    if len(columns) > 1:
        picture.texts.append(Text(right - size / 2, TOP - 8, last(columns), "middle"))
    scale(picture, low + 22, noise)
    if any(box.kind == "void" for box in picture.boxes):
        picture.legend = [("void", "not finite")]
    picture.height = int(low + 58)
    return picture


def first(labels: list[str]) -> str:
    """Name where the entries begin."""
    return labels[0].split(" … ")[0]


def last(labels: list[str]) -> str:
    """Name where the entries end."""
    return labels[-1].split(" … ")[-1]


def share(error: float, noise: float) -> float:
    """Say how much of its colour a cell has: by the logarithm of the error, above what may be rounding."""
    if error <= noise:
        return 0.0
    power = 1 - math.log10(error) / math.log10(noise) if error < 1 and noise < 1 else 1.0
    return round(float(power**1.5), 2)


def scale(picture: Picture, at: float, noise: float) -> None:
    """Draw what the colours mean."""
    for n in range(SWATCHES):
        error = noise ** (1 - n / (SWATCHES - 1))
        picture.boxes.append(Box(LEFT + n * 22, at, 22, 8, "cell", f"error {error:.0e}", share(error, noise)))
    label = f"{noise:.0e} and less"
    for x, kind, text in ((LEFT, "start", label), (LEFT + SWATCHES * 22, "end", "all")):
        picture.texts.append(Text(x, at + 24, text, kind))
