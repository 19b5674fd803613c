"""A graph as SVG and PNG: boxes, grey arrows forward, blue arrows with the norm of the gradient back.

Red is for what is wrong and for nothing else. All type is of one width, so that the size of a text is known
without its font; a label that finds no free place is left to the tooltip of its line.
"""

from __future__ import annotations

import textwrap
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

from pullback.errors import OptionError
from pullback.graphs import text
from pullback.graphs.layout import Point, laid_out
from pullback.graphs.parts import BROKEN, LOST, Edge, Node
from pullback.report.printable import shortened

if TYPE_CHECKING:
    from pullback.graphs.graph import Graph

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
INK, GREY, LINE, PAPER, BLUE, RED = "#1f2328", "#59636e", "#9aa4af", "#ffffff", "#0969da", "#cf222e"
FILLS = {
    "input": "#eef4ff",
    "variable": "#f3f4f6",
    "captured": "#f3f4f6",
    "output": "#eef4ff",
    "folded": "#fafbfc",
}
INTENTS = {"exact": "#1a7f37", "surrogate": "#8250df", "differs": "#bc4c00"}
BIG, SMALL = 12.0, 10.0
WIDE = 0.602  # of the type, in its size
MARGIN = 40.0
MOST = 1500  # boxes
Box = tuple[float, float, float, float]  # left, top, right, bottom


def available() -> bool:
    """Tell whether the library that lays out is there."""
    return find_spec("igraph") is not None


def svg(graph: Graph) -> str:
    """Draw a graph."""
    if len(graph.nodes) > MOST:
        raise OptionError.about(
            "graph",
            found=f"{len(graph.nodes)} boxes in one picture",
            expected=f"at most {MOST}",
            why="nobody could read it, and to lay it out takes long",
            fix="graph.svg(), which folds, or graph.fold(500).svg(fold=False)",
        )
    sizes = [_size(node) for node in graph.nodes]
    late = [node.kind in ("variable", "captured") for node in graph.nodes]
    room = list(sizes)  # beside a line stands the shape of what it carries
    for edge in graph.edges:
        width, height = room[edge.source]
        room[edge.source] = max(width, 2 * _wide(text.shape(edge), SMALL) + 24.0), height
    layout = laid_out(room, [(e.source, e.target) for e in graph.edges], late)
    head = _head(graph, max(layout.width, 460.0))
    left, top = MARGIN, 22.0 + 16.0 * len(head) + 44.0
    boxes = [(x + left, y + top) for x, y in layout.boxes]
    lines = [[(x + left, y + top) for x, y in line] for line in layout.lines]
    used = [_around(centre, size) for centre, size in zip(boxes, sizes)]
    drawn: list[str] = []
    labels: list[tuple[str, str]] = []
    culprit = None if graph.culprit is None else graph.culprit.node
    leading = {edge.source for edge in graph.edges}
    reached = {node.id for node in graph.nodes if node.id not in leading}
    reached |= {edge.source for edge in graph.edges if edge.state != "none"}  # those a gradient comes to
    shapes: set[tuple[int, int]] = set()  # written already: a value is described once
    for edge, line in zip(graph.edges, lines):
        ends = [sizes[edge.source], sizes[edge.target]]
        arrives = edge.target in reached
        drawn.append(_edge(edge, line, ends, arrives))
        named = (edge.source, edge.port) in shapes
        written = _label(edge, line, ends, used, "" if named else text.shape(edge), arrives)
        labels += written
        if any(words == text.shape(edge) for words, _ in written):
            shapes.add((edge.source, edge.port))
    for node, centre, size in zip(graph.nodes, boxes, sizes):
        drawn.append(_node(node, centre, size, node.id == culprit))
    width = max(
        [layout.width + 2 * MARGIN, *(_wide(words, SMALL + 1) + 2 * MARGIN for words, _ in head), 520.0]
    )
    height = top + layout.height + 8.0
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" font-size="{BIG:g}">',
            f"<title>{escape(graph.title)}</title>",
            _markers(),
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
            *_headed(head),
            *drawn,
            f'<g stroke="{PAPER}" stroke-width="3" stroke-linejoin="round" paint-order="stroke">',
            *(drawing for _, drawing in labels),
            "</g>",
            _legend(graph, height),
            "</svg>",
        ]
    )


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────


def _wide(words: str, size: float) -> float:
    return len(words) * size * WIDE


def _lines(node: Node) -> list[str]:
    """Give what is written in a box: its name, and what else is known of it."""
    more: list[str] = []
    if node.rule is not None:
        more.append(node.rule.intent)
    if node.kind == "folded":
        more.append(text.operations(node.inside))
    if node.kept:
        more.append(text.kept(node))
    if node.is_source and node.gradient is not None:
        more.append(f"∂ {text.flow(node.gradient)}")
    return [shortened(node.name, 30), *([" · ".join(more)] if more else [])]


def _size(node: Node) -> Point:
    lines = _lines(node)
    width = max(_wide(lines[0], BIG), *(_wide(line, SMALL) for line in lines[1:]), 30.0) + 20.0
    return width, 24.0 if len(lines) == 1 else 38.0


def _around(centre: Point, size: Point) -> Box:
    return centre[0] - size[0] / 2, centre[1] - size[1] / 2, centre[0] + size[0] / 2, centre[1] + size[1] / 2


def _node(node: Node, centre: Point, size: Point, is_culprit: bool) -> str:
    left, top, right, bottom = _around(centre, size)
    stroke = RED if is_culprit else INTENTS[node.rule.intent] if node.rule else "#c4ccd4"
    round_ = 12 if node.kind in ("input", "variable", "captured", "output") else 4
    thick = 2 if is_culprit or node.rule else 1
    lines = _lines(node)
    parts = [
        f'<g class="node" id="node{node.id}"><title>{escape(_tooltip(node))}</title>',
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
        f'rx="{round_}" fill="{FILLS.get(node.kind, PAPER)}" stroke="{stroke}" stroke-width="{thick}"/>',
    ]
    if node.kind == "folded":
        parts.append(
            f'<path d="M{left + 6:.1f} {bottom + 3:.1f}H{right - 6:.1f}" stroke="#c4ccd4" fill="none"/>'
        )
    y = centre[1] + (4.0 if len(lines) == 1 else -3.0)
    dashed = node.kind in ("variable", "captured")
    parts.append(_text(centre[0], y, lines[0], BIG, RED if is_culprit else GREY if dashed else INK))
    if len(lines) > 1:
        colour = INTENTS[node.rule.intent] if node.rule else GREY
        parts.append(_text(centre[0], centre[1] + 11.0, lines[1], SMALL, colour))
    return "".join([*parts, "</g>"])


def _tooltip(node: Node) -> str:
    rule = "" if node.rule is None else f"{node.rule.maker}: {node.rule.says}"
    parts = ["/".join((*node.scope, node.operation)), rule, text.kept(node), node.location]
    return "\n".join(part for part in parts if part)


def _text(x: float, y: float, words: str, size: float, colour: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────


def _trimmed(line: list[Point], ends: list[Point]) -> list[Point]:
    """End a line at the borders of its boxes."""
    first, last = line[0], line[-1]
    down = 1.0 if line[1][1] >= first[1] else -1.0
    below = 1.0 if last[1] >= line[-2][1] else -1.0
    return [
        (first[0], first[1] + down * (ends[0][1] / 2 + 1)),
        *line[1:-1],
        (last[0], last[1] - below * (ends[1][1] / 2 + 2)),
    ]


def _path(line: list[Point]) -> str:
    """Draw a line: vertical at its boxes, with soft turns between, and square where it is laid so."""
    parts = [f"M{line[0][0]:.1f} {line[0][1]:.1f}"]
    for i, ((x0, y0), (x1, y1)) in enumerate(pairwise(line)):
        if abs(x0 - x1) < 1 or abs(y0 - y1) < 1:
            parts.append(f"L{x1:.1f} {y1:.1f}")
            continue
        half = (y1 - y0) / 2
        start = _lean(line[i - 1], line[i], line[i + 1], half) if i else 0.0
        end = _lean(line[i], line[i + 1], line[i + 2], half) if i + 2 < len(line) else 0.0
        parts.append(f"C{x0 + start:.1f} {y0 + half:.1f} {x1 - end:.1f} {y1 - half:.1f} {x1:.1f} {y1:.1f}")
    return "".join(parts)


def _lean(before: Point, here: Point, after: Point, half: float) -> float:
    """Say how far a line leans to the side where it passes a layer."""
    if abs(after[1] - here[1]) < 1 or abs(here[1] - before[1]) < 1:
        return 0.0
    return (after[0] - before[0]) / (after[1] - before[1]) * half


def _edge(edge: Edge, line: list[Point], ends: list[Point], arrives: bool) -> str:
    points = _trimmed(line, ends)
    forward = [(x - 3, y) for x, y in points]
    back = [(x + 3, y) for x, y in reversed(points)]
    dashes = ' stroke-dasharray="4 3"' if edge.state == "still" else ""
    parts = [
        f'<g class="edge"><title>{escape(_told(edge))}</title>',
        f'<path d="{_path(forward)}" fill="none" stroke="{LINE}"{dashes} marker-end="url(#forward)"/>',
    ]
    if edge.state == "flows":
        parts.append(f'<path d="{_path(back)}" fill="none" stroke="{BLUE}" marker-end="url(#back)"/>')
    elif edge.state in LOST or edge.state in BROKEN:
        thin = ' stroke-dasharray="6 3"' if edge.state == "none" else ""
        thin = thin if arrives else ' stroke-dasharray="2 4" opacity="0.5"'  # it was lost further down
        parts.append(f'<path d="{_path(back)}" fill="none" stroke="{RED}"{thin} marker-end="url(#bad)"/>')
    return "".join([*parts, "</g>"])


def _told(edge: Edge) -> str:
    back = text.gradient(edge)
    return f"{text.shape(edge)}{f', gradient {back}' if back else ''}"


def _label(
    edge: Edge, line: list[Point], ends: list[Point], used: list[Box], shape: str, arrives: bool
) -> list[tuple[str, str]]:
    """Write shape and gradient beside a line, where nothing else stands; give words and drawings."""
    points = _trimmed(line, ends)
    written: list[tuple[str, str]] = []
    pieces = [(shape, GREY, -1)]
    back = text.gradient(edge)
    if back and (arrives or edge.state != "none"):
        bad = edge.state in LOST or edge.state in BROKEN
        pieces.insert(0, (f"∂ {back}" if back != "None" else "None", RED if bad else BLUE, 1))
    for words, colour, side in pieces:
        if not words:
            continue
        width, size = _wide(words, SMALL), SMALL
        for x, y, way in _places(points, side):
            left = x + 7 if way > 0 else x - 7 - width
            box = (left, y - size, left + width, y + 3)
            if not any(_touch(box, other) for other in used):
                used.append(box)
                written.append((words, _text(left, y, words, size, colour, "start")))
                break
    return written


def _places(points: list[Point], side: int) -> list[tuple[float, float, int]]:
    """List where a label may stand: beside the middle of each part of the line, then nearer to its ends."""
    found = []
    for part in (0.5, 0.35, 0.65, 0.2, 0.8):
        for (x0, y0), (x1, y1) in pairwise(points):
            if abs(y1 - y0) < 12:
                continue
            soft = part * part * (3 - 2 * part)
            found.append((x0 + (x1 - x0) * soft, y0 + (y1 - y0) * part + 3, side))
    return found


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _markers() -> str:
    kinds = (("forward", LINE), ("back", BLUE), ("bad", RED))
    arrows = (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0.5L8 4L0 7.5z" fill="{colour}"/></marker>'
        for name, colour in kinds
    )
    return f"<defs>{''.join(arrows)}</defs>"


# ── words around it ──────────────────────────────────────────────────────────────────────────────────────


def _head(graph: Graph, width: float) -> list[tuple[str, str]]:
    """Give the lines above the picture, with their colours."""
    most = max(int(width / ((SMALL + 1) * WIDE)), 60)
    found = [(f"{graph.title} · {graph.host}", INK)]
    told = [(line, RED) for line in ([graph.problem] if graph.problem else [])]
    if graph.culprit is not None:
        told.append((f"first culprit: {graph.culprit.says}", RED))
    told += [(note, GREY) for note in graph.notes]
    for line, colour in told:
        parts = textwrap.wrap(" ".join(line.split()), most, break_long_words=False, break_on_hyphens=False)
        found += [(part, colour) for part in parts]
    return found


def _headed(head: list[tuple[str, str]]) -> list[str]:
    return [
        _text(MARGIN, 28.0 + 16.0 * i, words, BIG + 1 if i == 0 else SMALL + 1, colour, "start")
        for i, (words, colour) in enumerate(head)
    ]


def _legend(graph: Graph, height: float) -> str:
    """Say what the colours mean, those that are there."""
    parts = [("→ forward", GREY), ("← gradient, its norm", BLUE)]
    intents = {node.rule.intent for node in graph.nodes if node.rule is not None}
    parts += [(f"▢ {intent}", colour) for intent, colour in INTENTS.items() if intent in intents]
    x, drawn = MARGIN, []
    for words, colour in parts:
        drawn.append(_text(x, height - 12.0, words, SMALL, colour, "start"))
        x += _wide(words, SMALL) + 18.0
    return "".join(drawn)
