"""Points at which the function itself switches: on the switch, on both sides, and beyond.

A bug at one exact value (a zero, an integer, the edge of a clip) shows nowhere else. The gaps of the view say
which value it is: one entry of one input is moved until a gap is zero. Where one entry cannot do it, as in
the norm of a row, all entries of an input that the gap depends on are made zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.checker.points import Point, finite
from pullback.checker.promises import promise
from pullback.dtypes import double, is_complex, is_real_or_complex
from pullback.view.subject import Array, Arrays, Subject

SWITCHES, ENTRIES, ROW, LARGE = 12, 3, 8, 4096


def switch_points(subject: Subject, rng: np.random.Generator) -> Iterator[Point]:
    """Give points on the switches of the function, where it exists."""
    look, inputs = subject.switches, subject.inputs
    if look is None or sum(x.size for x in inputs) > LARGE:
        return
    movable = [
        k
        for k, x in enumerate(inputs)
        if subject.differentiable[k]
        and x.size
        and is_real_or_complex(x.dtype)
        and not is_complex(x.dtype)
        and promise(x.astype(double(x.dtype))) == "free"
    ]
    try:
        before = look(inputs)
    except Exception:  # what cannot be looked into has no switches
        return
    seen: set[tuple[str, int, float]] = set()
    # The body runs more than once: the same gap tells nothing new.
    distinct = {
        (name, gap.shape, gap.tobytes()): number for number, (name, gap) in reversed(list(enumerate(before)))
    }
    for number in sorted(distinct.values())[:SWITCHES]:
        name, gap = before[number]
        for k, i, t in landed(subject, number, gap, movable, rng):
            at = round(float(t), 9)
            if (name, k, at) in seen:
                continue
            seen.add((name, k, at))
            entry = subject.names[k] + (f"[{', '.join(map(str, i))}]" if i else "")
            said = f"the switch of `{name}` at {at:g}"
            yield from _existing(subject, k, i, t, entry, said)
        for k, drawn in emptied(subject, number, movable):
            if finite(subject, drawn) is not None and (name, k, np.inf) not in seen:
                seen.add((name, k, np.inf))
                yield Point(f"a row of {subject.names[k]} on the switch of `{name}`", drawn)


def _existing(
    subject: Subject, k: int, i: tuple[int, ...], t: float, entry: str, said: str
) -> Iterator[Point]:
    inputs, x = subject.inputs, subject.inputs[k]
    there = moved(inputs, k, i, t)
    if finite(subject, there) is not None:
        yield Point(f"{entry} on {said}", there)
    # Both sides and beyond, all entries at once: what differs between them is no choice.
    reach = max(1.0, abs(t))
    sides = np.array([-2.0, -0.3, -0.05, 0.05, 0.3, 2.0]) * reach
    sided = (t + np.resize(sides, x.size) * np.linspace(0.9, 1.1, x.size)).reshape(x.shape).astype(x.dtype)
    around = tuple(sided if n == k else a for n, a in enumerate(inputs))
    if finite(subject, around) is not None:
        yield Point(f"{subject.names[k]} around {said}", around)
    for side in (-0.05, 0.05, -1.5, 1.5):
        near = moved(inputs, k, i, t + side * reach)
        if finite(subject, around) is None and finite(subject, near) is not None:
            yield Point(f"{entry} beside {said}", near)


def moved(inputs: Arrays, k: int, i: tuple[int, ...], t: float) -> Arrays:
    """Give the inputs with one entry changed."""
    other = np.array(inputs[k])
    other[i] = t
    return tuple(other if n == k else a for n, a in enumerate(inputs))


def landed(
    subject: Subject, number: int, gap: Array, movable: list[int], rng: np.random.Generator
) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """Find entries of inputs that reach a switch: the input, the index, and the value there."""
    for k in movable:
        x = subject.inputs[k]
        tried = [np.unravel_index(int(f), x.shape) for f in rng.permutation(x.size)[:ENTRIES]]
        count = 0
        for index in tried:
            i = tuple(int(n) for n in index)
            for t in secant(subject, number, gap, k, i):
                yield k, i, t
                count += 1
            if count >= 2:
                break


def secant(subject: Subject, number: int, gap: Array, k: int, i: tuple[int, ...]) -> list[float]:
    """Move one entry until some gap that depends on it is zero; give the values where one is."""
    start = float(subject.inputs[k][i])
    delta = 0.01 * max(abs(start), 0.1)

    def at(t: float) -> Array | None:
        found = _gap(subject, number, moved(subject.inputs, k, i, t))
        return found if found is not None and found.shape == gap.shape else None

    beside = at(start + delta)
    if beside is None:
        return []
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slopes = (beside - gap) / delta
        steps = np.where(slopes != 0, gap / slopes, np.nan).reshape(-1)
    nearest = [j for j in np.argsort(np.abs(steps)) if np.isfinite(steps[j])][:2]
    found = []
    for j in nearest:
        a, b, ga = start, start - float(steps[j]), float(gap.reshape(-1)[j])
        near = 1e-9 * (abs(ga) + abs(b))
        for _ in range(6):
            here = at(b)
            gb = np.nan if here is None else float(here.reshape(-1)[j])
            if abs(gb) <= near:  # the switch is a number that somebody wrote
                exact = [t for t in _neat(b) if (g := at(t)) is not None and g.reshape(-1)[j] == 0]
                found += exact[:1]
                break
            if not np.isfinite(gb) or gb == ga or abs(b) > 1e6:
                break
            a, b, ga = b, b - gb * (b - a) / (gb - ga), gb
    return found


def _neat(t: float) -> list[float]:
    """Give a value and the round ones next to it, the roundest first."""
    return list(
        dict.fromkeys([round(t, 0) + 0.0, round(t, 2) + 0.0, round(t, 6) + 0.0, float(f"{t:.12g}"), t])
    )


def emptied(subject: Subject, number: int, movable: list[int]) -> Iterator[tuple[int, Arrays]]:
    """Move one row of an input to where a gap that no single entry can close is zero, if that does it.

    A norm is zero where each entry of the row is at its lowest: the vertex of a parabola, else zero.
    """
    for k in movable:
        x = np.array(subject.inputs[k])
        if x.ndim == 0 or not 2 <= x.shape[-1] <= ROW:
            continue
        row = (0,) * (x.ndim - 1)
        for n in range(x.shape[-1]):
            index = (*row, n)
            x[index] = vertex(subject, number, k, index)
        drawn = tuple(x if n == k else a for n, a in enumerate(subject.inputs))
        gap = _gap(subject, number, drawn)
        if gap is not None and gap.size < x.size and (np.abs(gap) < 1e-30).any():
            yield k, drawn


def vertex(subject: Subject, number: int, k: int, i: tuple[int, ...]) -> float:
    """Give the value of one entry at which the first gap is lowest, if it is a parabola there; else zero."""
    start, h = float(subject.inputs[k][i]), 0.25
    found = [_gap(subject, number, moved(subject.inputs, k, i, start + s * h)) for s in (-1, 0, 1)]
    low, here, high = (np.nan if g is None or not g.size else float(g.reshape(-1)[0]) for g in found)
    bend = high - 2 * here + low
    if not np.isfinite(bend) or abs(bend) < 1e-9:
        return 0.0
    return round(start - h * (high - low) / (2 * bend), 6) + 0.0


def _gap(subject: Subject, number: int, inputs: Arrays) -> Array | None:
    try:
        return subject.switches(inputs)[number][1] if subject.switches else None
    except Exception:  # outside the domain
        return None
