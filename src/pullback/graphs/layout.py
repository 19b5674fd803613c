"""Where boxes and lines go: layers by igraph's Sugiyama layout, and long graphs in columns like a newspaper.

Boxes of a layer never touch. A line that passes a layer has a place of its own in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pullback.errors import HostError
from pullback.graphs.order import layers

GAP, ROW, GUTTER = 26.0, 72.0, 36.0
SCREEN = (1200.0, 670.0)  # what a picture should not be larger than
Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Hold the middle of each box, the points of each line, and the size of all."""

    boxes: list[Point]
    lines: list[list[Point]]
    width: float
    height: float
    columns: int = 1


def laid_out(sizes: Sequence[Point], pairs: Sequence[tuple[int, int]], late: Sequence[bool]) -> Layout:
    """Place boxes of these sizes, and lines between them."""
    try:
        import igraph
    except ImportError:
        raise HostError.about(
            "graph",
            found="igraph is not installed, which lays out the picture",
            expected="igraph, for SVG and PNG",
            fix="pip install 'pullback[see]', or graph.dot() and graph.mermaid(), which need nothing",
        ) from None
    if not sizes:
        return Layout([], [], 0.0, 0.0)
    level = layers(len(sizes), pairs, late)
    vertices = list(level)
    widths = [width for width, _ in sizes]
    chains: list[list[int]] = []
    links: list[tuple[int, int]] = []
    for source, target in pairs:
        chain = [source]
        step = 1 if level[target] >= level[source] else -1
        for between in range(level[source] + step, level[target], step):
            chain.append(len(vertices))
            vertices.append(between)
            widths.append(10.0)
        chain.append(target)
        chains.append(chain)
        links += pairwise(chain)
    drawn = igraph.Graph(n=len(vertices), edges=links, directed=True)
    coordinates = drawn.layout_sugiyama(layers=vertices, hgap=1, vgap=1, maxiter=200).coords
    x = _spaced([place[0] for place in coordinates[: len(vertices)]], vertices, widths, links)
    deepest = max(vertices) + 1
    tried = [_columns(x, vertices, widths, sizes, chains, count) for count in range(1, min(deepest, 6) + 1)]
    return min(tried, key=_badness)


def _badness(found: Layout) -> float:
    """Weigh what does not fit on a screen against lines that go from column to column."""
    bent = sum(len(line) > 2 and any(a[1] > b[1] for a, b in pairwise(line)) for line in found.lines)
    large = max(1.0, found.width / SCREEN[0], found.height / SCREEN[1])
    return large + 0.12 * max(0, bent - (found.columns - 1))


def _spaced(
    wanted: Sequence[float], level: Sequence[int], widths: Sequence[float], links: Sequence[tuple[int, int]]
) -> list[float]:
    """Keep the order in every layer, and make room for the boxes; then pull each to its neighbours."""
    rows: dict[int, list[int]] = {}
    for vertex, row in enumerate(level):
        rows.setdefault(row, []).append(vertex)
    for members in rows.values():
        members.sort(key=lambda v: (wanted[v], v))
    x = [0.0] * len(level)
    near: list[list[int]] = [[] for _ in level]
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    for members in rows.values():
        _settle(members, [float(i) for i in range(len(members))], widths, x)
    for _ in range(24):
        for row in (*sorted(rows), *sorted(rows, reverse=True)):
            members = rows[row]
            goals = [sum(x[n] for n in near[v]) / len(near[v]) if near[v] else x[v] for v in members]
            _settle(members, goals, widths, x)
    least = min(x[v] - widths[v] / 2 for v in range(len(x)))
    return [place - least for place in x]


def _settle(members: Sequence[int], goals: Sequence[float], widths: Sequence[float], x: list[float]) -> None:
    """Put the members of a layer as near to their goals as their widths allow; those that push are pooled."""
    pools: list[tuple[float, int, float, int]] = []  # where it starts, first member, sum of wishes, count
    offsets = [0.0]
    for a, b in pairwise(members):
        offsets.append(offsets[-1] + (widths[a] + widths[b]) / 2 + GAP)
    wishes = [goal - offset for goal, offset in zip(goals, offsets)]
    for i, wish in enumerate(wishes):
        pools.append((wish, i, wish, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            _, _, last, more = pools.pop()
            _, first, total, count = pools.pop()
            pools.append(((total + last) / (count + more), first, total + last, count + more))
    for start, first, _, count in pools:
        for i in range(first, first + count):
            x[members[i]] = start + offsets[i]


def _columns(
    x: list[float],
    level: Sequence[int],
    widths: Sequence[float],
    sizes: Sequence[Point],
    chains: Sequence[Sequence[int]],
    count: int,
) -> Layout:
    """Break a long graph into so many columns."""
    rows = -(-(max(level) + 1) // count)
    count = -(-(max(level) + 1) // rows)
    column = [row // rows for row in level]
    lefts, at = [], 0.0
    for i in range(count):
        inside = [v for v in range(len(x)) if column[v] == i]
        low = min(x[v] - widths[v] / 2 for v in inside)
        high = max(x[v] + widths[v] / 2 for v in inside)
        lefts.append(at - low)
        at += high - low + GUTTER * 2
    places = [(x[v] + lefts[column[v]], (level[v] % rows) * ROW) for v in range(len(x))]
    bottom = (rows - 1) * ROW + ROW * 0.55
    lines: list[list[Point]] = []
    crossing = 0
    ends = [max(places[v][0] + widths[v] / 2 for v in range(len(x)) if column[v] == i) for i in range(count)]
    for chain in chains:
        points: list[Point] = []
        for a, b in pairwise(chain):
            points.append(places[a])
            if column[a] != column[b]:
                shift = (crossing % 5) * 6.0
                crossing += 1
                gutter, top, low = ends[column[a]] + GUTTER * 0.6 + shift, -ROW * 0.5 - shift, bottom + shift
                points += [(places[a][0], low), (gutter, low), (gutter, top), (places[b][0], top)]
        points.append(places[chain[-1]])
        lines.append(points)
    boxes = places[: len(sizes)]
    return Layout(boxes, lines, at - GUTTER * 2, rows * ROW, count)
