"""The order of nodes: each behind those it takes values from, and else as the function ran."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from pullback.graphs.parts import Edge


def ordered(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Sort nodes so that every pair goes forward; in a circle, the one that ran first comes first."""
    following: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for source, target in set(pairs):
        if source != target:
            following[source].append(target)
            waits[target] += 1
    ready = [node for node in range(count) if not waits[node]]
    heapq.heapify(ready)
    done: list[int] = []
    seen = [False] * count
    rest = iter(range(count))
    while len(done) < count:
        if not ready:  # a circle: folding can make one
            heapq.heappush(ready, next(node for node in rest if not seen[node]))
        node = heapq.heappop(ready)
        if seen[node]:
            continue
        seen[node] = True
        done.append(node)
        for other in following[node]:
            waits[other] -= 1
            if not waits[other] and not seen[other]:
                heapq.heappush(ready, other)
    return done


def layers(count: int, pairs: Sequence[tuple[int, int]], late: Sequence[bool]) -> list[int]:
    """Give each node its layer, behind all that it takes from; the `late` ones right before their use."""
    place = {node: i for i, node in enumerate(ordered(count, pairs))}
    forward = [(s, t) for s, t in pairs if place[s] < place[t]]
    following: list[list[int]] = [[] for _ in range(count)]
    for source, target in forward:
        following[source].append(target)
    found = [0] * count
    for node in sorted(range(count), key=place.__getitem__):
        for other in following[node]:
            found[other] = max(found[other], found[node] + 1)
    for node in range(count):
        if late[node] and following[node]:
            found[node] = max(0, min(found[other] for other in following[node]) - 1)
    return found


def beside(edges: Iterable[Edge]) -> tuple[dict[int, list[Edge]], dict[int, list[Edge]]]:
    """Give the edges behind each node, and those before it."""
    after: dict[int, list[Edge]] = {}
    before: dict[int, list[Edge]] = {}
    for edge in edges:
        after.setdefault(edge.source, []).append(edge)
        before.setdefault(edge.target, []).append(edge)
    return after, before


def ahead(after: Mapping[int, Iterable[Edge]]) -> dict[int, list[int]]:
    """Give the nodes that edges lead to."""
    return {node: [edge.target for edge in edges] for node, edges in after.items()}


def behind(before: Mapping[int, Iterable[Edge]]) -> dict[int, list[int]]:
    """Give the nodes that edges come from."""
    return {node: [edge.source for edge in edges] for node, edges in before.items()}


def reached(starts: Iterable[int], steps: Mapping[int, Iterable[int]]) -> set[int]:
    """Find the nodes that steps lead to, and the starts themselves."""
    waiting = list(starts)
    seen = set(waiting)
    while waiting:
        for step in steps.get(waiting.pop(), ()):
            if step not in seen:
                seen.add(step)
                waiting.append(step)
    return seen
