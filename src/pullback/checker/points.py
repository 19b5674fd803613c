"""Points of the checker's own, where bugs hide and examples seldom look.

Derived from the user's example: zeros, ties, negatives, saturation, thresholds at round numbers, tiny and
huge values, equal inputs, repeated indices. What an example obviously promises (a mask, rows that sum to
one or have length one, a symmetric or triangular matrix) is kept, because a rule may rest on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from pullback.checker.promises import promise, structure
from pullback.domain import folded
from pullback.dtypes import double, is_complex, is_real_or_complex
from pullback.view.subject import Array, Arrays, Subject

Draw = Callable[[np.random.Generator, Array, float], Any]


@dataclass(frozen=True)
class Point:
    """Name one tuple of inputs."""

    label: str
    inputs: Arrays
    # An edge is a place made for kinks and ties: there the host's own choice is accepted.
    extreme: bool = False
    resized: bool = False  # axes have other lengths than the given ones
    apart: bool = False  # … and not all that had one length: a forward may run where nothing is meant


def _ints(rng: np.random.Generator, x: Array, r: float) -> Any:
    return rng.integers(-3, 4, x.shape).astype(float)


def _some_zero(rng: np.random.Generator, x: Array, r: float) -> Any:
    drawn = r * rng.normal(size=x.shape)
    zero = np.asarray(rng.random(x.shape) < 0.4)
    if x.size:
        zero.flat[rng.integers(x.size)] = True
    return np.where(zero, rng.choice([0.0, -0.0], x.shape), drawn)


def _zero_among_given(rng: np.random.Generator, x: Array, r: float) -> Any:
    out = np.array(x, float)
    if x.size:
        out.flat[rng.integers(x.size)] = 0.0
    return out


def _ties(rng: np.random.Generator, x: Array, r: float) -> Any:
    return rng.choice(r * rng.normal(size=2), x.shape)


def _ties_of_given(rng: np.random.Generator, x: Array, r: float) -> Any:
    return rng.choice(x.reshape(-1)[: max(2, x.size // 2)], x.shape)


def _wide(rng: np.random.Generator, x: Array, r: float) -> Any:
    return rng.choice([-1.0, 1.0], x.shape) * 10.0 ** rng.uniform(-2, 1.5, x.shape)


def _between(rng: np.random.Generator, x: Array, r: float) -> Any:
    low, high = float(x.min()), float(x.max())
    return rng.uniform(low, high, x.shape) if high > low else x * rng.uniform(0.6, 1.4, x.shape)


DRAWS: dict[str, tuple[Draw, bool]] = {
    "between the given values": (_between, False),
    "both signs": (lambda rng, x, r: r * rng.normal(size=x.shape), False),
    "both signs, again": (lambda rng, x, r: r * rng.normal(size=x.shape), False),
    "positive": (lambda rng, x, r: r * np.abs(rng.normal(size=x.shape)) + 1e-3, False),
    "in (0, 1)": (lambda rng, x, r: rng.uniform(0.02, 0.98, x.shape), False),
    "in (-1, 1)": (lambda rng, x, r: rng.uniform(-0.98, 0.98, x.shape), False),
    "above one": (lambda rng, x, r: 1 + np.abs(rng.normal(size=x.shape)), False),
    "larger": (lambda rng, x, r: 5 * r * rng.normal(size=x.shape), False),
    "wide": (_wide, False),
    "wide, again": (_wide, False),
    "wide, once more": (_wide, False),
    "in (-5, 5)": (lambda rng, x, r: rng.uniform(-5, 5, x.shape), False),
    "in (-5, 5), again": (lambda rng, x, r: rng.uniform(-5, 5, x.shape), False),
    "in (-3, 3)": (lambda rng, x, r: rng.uniform(-3, 3, x.shape), False),
    "small integers": (_ints, False),
    "halves": (lambda rng, x, r: rng.integers(-4, 5, x.shape) / 2, False),
    "some zero": (_some_zero, False),
    "a zero among the given": (_zero_among_given, False),
    "ties": (_ties, False),
    "ties of the given": (_ties_of_given, False),
    "all equal": (lambda rng, x, r: np.full(x.shape, r * rng.uniform(0.5, 1.5)), False),
    "all zero": (lambda rng, x, r: np.zeros(x.shape), True),
    "tiny": (lambda rng, x, r: 1e-5 * rng.normal(size=x.shape), True),
    "saturated": (lambda rng, x, r: rng.choice([-1.0, 1.0], x.shape) * rng.uniform(10, 40, x.shape), True),
    "huge": (lambda rng, x, r: rng.choice([-1.0, 1.0], x.shape) * 10.0 ** rng.uniform(2, 3, x.shape), True),
}


LARGE = 100_000
MOST = 8  # axes, and pairs of axes, that are lengthened apart from others
UNSYMMETRIC = ("both signs", "wide", "in (-5, 5)")
FEW = ("both signs", "in (-5, 5)", "small integers", "some zero", "huge")


def _structured(rng: np.random.Generator, x: Array, kind: str) -> Any:
    """Draw another value that keeps the promise of the example."""
    if kind == "mask":
        return rng.permutation(x, axis=-1) if x.ndim else x
    if kind == "symmetric mask":
        order = rng.permutation(x.shape[-1])
        return x[..., order, :][..., order]
    if kind == "simplex":
        e = np.exp(rng.normal(size=x.shape))
        return e / e.sum(-1, keepdims=True)
    if kind == "unit length":
        e = rng.normal(size=x.shape)
        return e / np.sqrt(np.square(e).sum(-1, keepdims=True))
    a: Any = rng.normal(size=x.shape)
    if is_complex(x.dtype):
        a = a + 1j * rng.normal(size=x.shape)
    if kind == "triangular":
        return np.where(x == 0, 0, a) + np.where(np.eye(x.shape[-1], dtype=bool), 2.0, 0.0)
    if kind == "positive definite":
        return a @ np.conj(np.swapaxes(a, -1, -2)) + 0.5 * np.eye(x.shape[-1])
    return x


def _draw(rng: np.random.Generator, x: Array, label: str, *, alone: bool) -> Any:
    if x.dtype.kind == "b":
        return rng.random(x.shape) < (0.0 if label == "all zero" else 1.0 if label == "all equal" else 0.5)
    if x.dtype.kind in "iu":
        return _indices(rng, x, label)
    if not is_real_or_complex(x.dtype):
        return x
    work = x.astype(double(x.dtype))
    kind = promise(work)
    if kind == "fixed":
        return x
    # A mask alone masks nothing, and symmetry may be an accident of the example: look beyond them.
    if alone:
        kind = {"mask": "free", "symmetric mask": "symmetric"}.get(kind, kind)
    if kind not in ("free", "symmetric"):
        return _structured(rng, work, kind).astype(x.dtype)
    drawn = _free(rng, work, label)
    if kind == "symmetric" and label not in UNSYMMETRIC:
        upper = np.triu(drawn, 1)  # mirrored, so that zeros, ties and whole numbers stay
        drawn = upper + np.conj(np.swapaxes(upper, -1, -2)) + drawn.real * np.eye(x.shape[-1])
    with np.errstate(over="ignore"):
        return drawn.astype(x.dtype)


def _free(rng: np.random.Generator, work: Array, label: str) -> Any:
    """Draw anything that the label says."""
    rms = float(np.sqrt(np.mean(np.abs(work) ** 2)))
    r = rms if rms > 0 else 1.0
    draw = DRAWS[label][0]
    if is_complex(work.dtype):
        imaginary = draw(rng, work.imag, r)
        return draw(rng, work.real, r) + 1j * imaginary
    return draw(rng, work, r)


def _indices(rng: np.random.Generator, x: Array, label: str) -> Any:
    if x.size == 0:
        return x
    if label in ("ties", "all equal", "ties of the given"):
        values = x.reshape(-1)[: 1 if label == "all equal" else max(1, x.size // 2)]
        return rng.choice(values, x.shape).astype(x.dtype)
    if "again" in label:
        return rng.permutation(x.reshape(-1)).reshape(x.shape)
    return x


def finite(subject: Subject, inputs: Arrays) -> Arrays | None:
    """Give the outputs where the function exists, None elsewhere."""
    try:
        outputs = subject.oracle_forward(inputs)
    except Exception:  # a user's function may refuse a point in any way it likes
        return None
    ok = outputs and all(np.isfinite(o.astype(np.complex128)).all() for o in outputs)
    return outputs if ok else None


def own_points(
    subject: Subject, rng: np.random.Generator, *, extreme_only: bool = False, apart: bool = False
) -> Iterator[Point]:
    """Draw points where the function exists: all kinds, or the same extreme ones and no other.

    `apart` lengthens axes of one length apart from each other, too.
    """
    inputs = subject.inputs
    moving = [
        k for k, x in enumerate(inputs) if x.size and (is_real_or_complex(x.dtype) or x.dtype.kind in "iub")
    ]
    alone = sum(is_real_or_complex(x.dtype) for x in inputs) == 1
    for label, (_, extreme) in DRAWS.items():
        # Large inputs hold every kind of value at once: a few points suffice.
        if sum(x.size for x in inputs) > LARGE and label not in FEW:
            continue
        drawn = tuple(_draw(rng, x, label, alone=alone) for x in inputs)
        if subject.limits is not None:
            drawn = folded(subject.limits, drawn)
        if extreme_only and not extreme:
            continue  # it is drawn, so that the others are where they always are
        if finite(subject, drawn) is not None:
            yield Point(label, drawn, extreme)
        elif len(moving) > 1:
            # Outside the domain together: move one input at a time.
            for k in moving:
                single = tuple(d if i == k else x for i, (d, x) in enumerate(zip(drawn, inputs)))
                if finite(subject, single) is not None:
                    yield Point(f"{label} in {subject.names[k]}", single, extreme)
    if extreme_only:
        return
    floats = [k for k in moving if is_real_or_complex(inputs[k].dtype) and structure(inputs[k]) == "free"]
    if len(floats) > 1 and len({inputs[k].shape for k in floats}) == 1:
        same = tuple(inputs[floats[0]].astype(x.dtype) if i in floats else x for i, x in enumerate(inputs))
        if finite(subject, same) is not None:
            yield Point("inputs equal", same)
    for label, resized in reshaped(subject, rng):
        yield Point(label, resized, resized=True)
    for label, resized in _moved(subject, rng, _apart(subject)) if apart else ():
        yield Point(label, resized, resized=True, apart=True)


def stretch(x: Array, lengths: dict[int, int], axis: int | None = None) -> Array:
    """Change axis lengths by repeating or cutting entries."""
    for i, d in enumerate(x.shape):
        if d and d in lengths and (axis is None or axis == i):
            x = np.take(x, np.arange(lengths[d]) % d, axis=i)
    return x


def reshaped(subject: Subject, rng: np.random.Generator) -> Iterator[tuple[str, Arrays]]:
    """Lengthen axes where the function accepts it: what is right only for equal lengths shows then."""
    return _moved(subject, rng, islice(_lengthened(subject), 6))


def _moved(
    subject: Subject, rng: np.random.Generator, candidates: Iterator[tuple[str, Arrays]]
) -> Iterator[tuple[str, Arrays]]:
    """Move the numbers of other shapes, and keep those where the function exists."""
    if not subject.is_rule:
        return  # an operation of the framework may read past the end of what does not fit
    if sum(x.size for x in subject.inputs) > 4096:
        return
    for label, inputs in candidates:
        noisy = tuple(
            (x * rng.uniform(0.8, 1.2, x.shape)).astype(x.dtype)
            if is_real_or_complex(x.dtype) and structure(x) == "free"
            else x
            for x in inputs
        )
        if finite(subject, noisy) is not None:
            yield label, noisy


def _lengthened(subject: Subject) -> Iterator[tuple[str, Arrays]]:
    """Lengthen all axes of one length, then each axis of an input that has two such."""
    lengths = sorted({d for x in subject.inputs for d in x.shape if d > 1})
    for d in lengths[:3]:
        yield f"axes of {d} made {d + 1}", tuple(stretch(x, {d: d + 1}) for x in subject.inputs)
    for k, x in enumerate(subject.inputs):
        if len(set(x.shape)) < x.ndim:
            for axis, d in enumerate(x.shape):
                if d >= 2:
                    yield _longer(subject, (k, axis))


def _longer(subject: Subject, *places: tuple[int, int]) -> tuple[str, Arrays]:
    """Lengthen the axes in some places."""
    inputs = list(subject.inputs)
    for k, axis in places:
        d = inputs[k].shape[axis]
        inputs[k] = stretch(inputs[k], {d: d + 1}, axis)
    said = " and ".join(f"axis {axis} of {subject.names[k]}" for k, axis in places)
    return f"{said} longer", tuple(inputs)


def _apart(subject: Subject) -> Iterator[tuple[str, Arrays]]:
    """Lengthen axes of one length: each alone, then two of them, then all that have the same number."""
    by_length: dict[int, list[tuple[int, int]]] = {}
    for k, x in enumerate(subject.inputs):
        for axis, d in enumerate(x.shape):
            by_length.setdefault(d, []).append((k, axis))
    shared = [places for d, places in sorted(by_length.items()) if d > 1 and len(places) > 1]
    yield from islice((_longer(subject, place) for places in shared for place in places), MOST)
    shared = [places for places in shared if len(places) > 2]
    yield from islice(
        (_longer(subject, *pair) for places in shared for pair in combinations(places, 2)), MOST
    )
    for places in shared:
        for axis in sorted({axis for _, axis in places}):
            numbered = [place for place in places if place[1] == axis]
            if 2 < len(numbered) < len(places):
                yield _longer(subject, *numbered)
