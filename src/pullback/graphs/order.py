"""The order of nodes: each behind those it takes values from, and else as the function ran."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence


def ordered(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Sort nodes so that every pair goes forward; in a circle, the one that ran first comes first."""
    ahead: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for source, target in set(pairs):
        if source != target:
            ahead[source].append(target)
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
        for other in ahead[node]:
            waits[other] -= 1
            if not waits[other] and not seen[other]:
                heapq.heappush(ready, other)
    return done


def layers(count: int, pairs: Sequence[tuple[int, int]], late: Sequence[bool]) -> list[int]:
    """Give each node its layer, behind all that it takes from; the `late` ones right before their use."""
    place = {node: i for i, node in enumerate(ordered(count, pairs))}
    forward = [(s, t) for s, t in pairs if place[s] < place[t]]
    ahead: list[list[int]] = [[] for _ in range(count)]
    for source, target in forward:
        ahead[source].append(target)
    found = [0] * count
    for node in sorted(range(count), key=place.__getitem__):
        for other in ahead[node]:
            found[other] = max(found[other], found[node] + 1)
    for node in range(count):
        if late[node] and ahead[node]:
            found[node] = max(0, min(found[other] for other in ahead[node]) - 1)
    return found


def reached(starts: Sequence[int], steps: dict[int, list[int]]) -> set[int]:
    """Find the nodes that steps lead to, and the starts themselves."""
    seen, waiting = set(starts), list(starts)
    while waiting:
        for step in steps.get(waiting.pop(), ()):
            if step not in seen:
                seen.add(step)
                waiting.append(step)
    return seen
