"""The shapes that a picture is made of, in the units of its view box. Their colours are the style's."""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH, HEIGHT = 440, 290
LEFT, RIGHT, TOP, BOTTOM = 56, 424, 26, 248  # of the frame that data stands in


@dataclass(frozen=True)
class Text:
    """Hold a word at a place; `kind` says how it is aligned and coloured."""

    x: float
    y: float
    text: str
    kind: str


@dataclass(frozen=True)
class Path:
    """Hold a line through points, as SVG writes it."""

    d: str
    kind: str
    title: str = ""


@dataclass(frozen=True)
class Dot:
    """Hold a point, and what hovering over it says."""

    x: float
    y: float
    kind: str
    title: str
    r: float = 3.0


@dataclass(frozen=True)
class Box:
    """Hold a rectangle, and what hovering over it says; `share` is how much of its colour it has."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str
    share: float = 1.0


@dataclass
class Picture:
    """Hold one picture, ready to be written."""

    kind: str
    title: str
    note: str = ""
    height: int = HEIGHT
    texts: list[Text] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)  # the kind of a shape, and its meaning
    width: int = WIDTH

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str, title: str = "") -> None:
        """Add a straight line."""
        self.paths.append(Path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", kind, title))


def through(points: list[tuple[float, float] | None]) -> str:
    """Write a line through points; None breaks it."""
    parts, pen = [], "M"
    for point in points:
        if point is None:
            pen = "M"
            continue
        parts.append(f"{pen}{point[0]:.1f} {point[1]:.1f}")
        pen = "L"
    return "".join(parts)
