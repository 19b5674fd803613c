"""Surrogates: gradients that are another thing than the derivative on purpose, recognised by measuring.

A step has no slope to learn from, so its author gives it one; the identity is given a gradient of its own to
reverse, scale or clip what passes. Both fail the derivative test as a mistake does. A mistake must never be
taken for one: the function must be flat wherever it is looked at and still not constant, or be the identity
to the last bit; and the gradient must be of use, along with the function on a large scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pullback.checker.directions import floor_of, signed
from pullback.checker.evidence import Evidence
from pullback.checker.probes.linearity import nonlinear
from pullback.view.subject import Array, KnownAs

# Pairs of far points, for the slope on a large scale, by how many times the size of the inputs it is: where
# they look again, chance must have less of a say.
WIDE = {1.0: 48, 4.0: 192, 16.0: 192}
ALIKE = 0.2  # how far claimed and large-scale slopes must go together
LEAST = 4  # points, below which a coincidence is possible
FLAT = 0.9  # of the outputs stay where they are
SCALES = (1e-6, 1e-2, 1.0, 1e2, 1e6)  # of the upstream gradient, for what is clipped


@dataclass(frozen=True)
class Surrogate:
    """Hold what was recognised: the reason to declare, in a word, and what was seen."""

    reason: str
    seen: str
    place: int


def recognised(evidence: Evidence) -> Surrogate | None:
    """Recognise a surrogate by the inputs whose gradient is wrong, or moves where the function does not."""
    places = evidence.wrong_inputs or [
        p for p in range(evidence.count) if any(evidence.part(c, p).any() for c in evidence.claimed)
    ]
    if not all(np.isfinite(c).all() for c in evidence.claimed):
        return None
    points = _points(evidence)
    if len(points) < LEAST:
        return None
    for place in places:
        found = _of_identity(evidence, place, points) or _of_flat(evidence, place, points)
        if found is not None:
            return found
    return next(filter(None, (_of_handed(evidence, place, points) for place in range(evidence.count))), None)


def _points(evidence: Evidence) -> list[Array]:
    """Draw points of both signs and many sizes, where the function exists; the given one is the first."""
    problem, rng = evidence.problem, evidence.settings.rng(81)
    x = problem.x
    size = 16 * floor_of(x)
    drawn = []
    for i in range(12):
        if i % 3 == 0:
            drawn.append(size * rng.normal(size=x.size))
        elif i % 3 == 1:
            drawn.append(x * rng.uniform(0.3, 1.7, x.size) + (x == 0) * rng.normal(size=x.size))
        else:
            drawn.append(rng.choice([-1.0, 1.0], x.size) * size * 10.0 ** rng.uniform(-1.5, 0.5, x.size))
    if problem.low is not None and problem.high is not None:  # they may be bounds of a small box
        low, high = np.maximum(problem.low, x - 4 * size), np.minimum(problem.high, x + 4 * size)
        drawn += [rng.uniform(low, high) for _ in range(8)]
    drawn += [_between(evidence, rng) for _ in range(8)]  # where nothing else exists
    return [x, *(point for point in drawn if np.isfinite(problem.evaluate(point)[1]).all())][:9]


def _between(evidence: Evidence, rng: np.random.Generator) -> Array:
    """Draw a point between the least and the largest entry of each input."""
    point: Array = evidence.problem.x.copy()
    for place in range(evidence.count):
        part = evidence.problem.domain.part(place)
        if point[part].size:
            point[part] = rng.uniform(point[part].min(), point[part].max(), point[part].size)
    return point


# ── the identity ─────────────────────────────────────────────────────────────────────────────────────────


def _of_identity(evidence: Evidence, place: int, points: list[Array]) -> Surrogate | None:
    """Recognise the identity of an input, with a gradient that is scaled, reversed, stopped or clipped."""
    if not _is_identity(evidence, place, points):
        return None
    others = [p for p in range(evidence.count) if p != place]
    if any(evidence.part(c, p).any() for c in evidence.claimed for p in others):
        return None
    said = f"the function is the identity of `{evidence.name(place)}`, and the gradient is "
    factor = _factor(evidence, place, points)
    if factor is not None:
        word = "reversed" if factor < 0 else "stopped" if factor == 0 else "scaled"
        return Surrogate(f"{word} gradient", f"{said}{factor:.6g} times `dy`", place)
    if _is_clipped(evidence, place, points):
        return Surrogate("clipped gradient", f"{said}`dy`, clipped or masked", place)
    return None


def _of_handed(evidence: Evidence, place: int, points: list[Array]) -> Surrogate | None:
    """Recognise the identity of an input whose gradient is handed to another one, which is not read."""
    if not _is_identity(evidence, place, points):
        return None
    other = [
        p
        for p in range(evidence.count)
        if p != place and any(evidence.part(c, p).any() for c in evidence.claimed)
    ]
    pairs = list(zip(evidence.vs, evidence.claimed))
    if len(other) != 1 or not all(np.array_equal(evidence.part(c, other[0]), v) for v, c in pairs):
        return None
    said = f"the function is the identity of `{evidence.name(place)}`, and `dy` is passed to "
    return Surrogate("straight-through", f"{said}`{evidence.name(other[0])}`, which is not read", other[0])


def _is_identity(evidence: Evidence, place: int, points: list[Array]) -> bool:
    part = evidence.problem.domain.part(place)
    return all(np.array_equal(x[part], y) for x, y in map(evidence.problem.evaluate, points))


def _factor(evidence: Evidence, place: int, points: list[Array]) -> float | None:
    """Give the number by which the claim is the upstream gradient, the same at every point."""
    problem, part = evidence.problem, evidence.problem.domain.part(place)
    v = evidence.vs[0]
    factor = float(problem.gradient(v)[part] @ v) / float(v @ v)
    for point in points[:3]:
        for cotangent in (evidence.vs[0], 1e4 * evidence.vs[1], 1e-4 * evidence.vs[2]):
            claimed = problem.gradient(cotangent, point)[part]
            if not evidence.close(claimed, factor * cotangent):
                return None
    return 0.0 if abs(factor) < problem.unit else factor


def _is_clipped(evidence: Evidence, place: int, points: list[Array]) -> bool:
    """Tell whether the claim is the upstream gradient made smaller, entry by entry, and nothing else."""
    problem, part = evidence.problem, evidence.problem.domain.part(place)
    if problem.y.size != problem.x[part].size:
        return False
    for point in points[:3]:
        for scale in SCALES:
            v = scale * evidence.vs[0]
            share = problem.gradient(v, point)[part] / v
            if not ((share > -1e-3) & (share < 1 + 1e-3)).all():  # NaN is none
                return False
    return True


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────


def _of_flat(evidence: Evidence, place: int, points: list[Array]) -> Surrogate | None:
    """Recognise a step: flat in an input almost everywhere and not constant, with a gradient of use."""
    problem = evidence.problem
    part = problem.domain.part(place)
    name = evidence.name(place)
    said = f"the function is flat in `{name}` at all {len(points)} points tried, and the gradient is "
    if not evidence.part(evidence.claimed[0], place).any() and _claims_nothing(evidence, place, points):
        return None
    if not _is_flat(evidence, place, points):
        return _of_clip(evidence, place, points)
    broken = nonlinear(problem, evidence.settings.rng(82))
    if broken is not None and (broken.at_zero or not _is_clipped(evidence, place, points)):
        return None
    if not _goes_along(evidence, place):
        return None
    if problem.y.size == problem.x[part].size and all(
        np.all((c == v) | (c == 0))
        for v, c in ((v, evidence.part(c, place)) for v, c in zip(evidence.vs, evidence.claimed))
    ):
        return Surrogate("straight-through", f"{said}`dy`, passed through", place)
    return Surrogate("surrogate gradient", f"{said}not zero", place)


def _claims_nothing(evidence: Evidence, place: int, points: list[Array]) -> bool:
    v, part = evidence.vs[0], evidence.problem.domain.part(place)
    return not any(evidence.problem.gradient(v, point)[part].any() for point in points)


def _is_flat(evidence: Evidence, place: int, points: list[Array]) -> bool:
    """Tell whether outputs stay where they are, at the first point and at nearly all; until it is known."""
    shares: list[float] = []
    for point in points:
        shares.append(_share_unmoved(evidence, place, point))
        if shares[0] < 0.5 or (sum(shares) + len(points) - len(shares)) / len(points) < FLAT - 1e-6:
            return False
    return bool(np.mean(shares) >= FLAT)


def _share_unmoved(evidence: Evidence, place: int, point: Array) -> float:
    """Measure how many outputs stay to the last bit when an input moves a little."""
    problem, rng = evidence.problem, evidence.settings.rng(83)
    y = problem.evaluate(point)[1]
    u = _within(evidence, place, np.maximum(np.abs(point), floor_of(point)))
    step = max(2.0**-20, 256 * problem.unit)
    shares = []
    for _ in range(3):
        reached, moved = problem.evaluate(point + step * u * signed(rng, point.size))
        if np.array_equal(reached, point):
            return 0.0  # the step was rounded away: nothing was seen
        shares.append(float(np.mean(moved == y)))
    return float(np.mean(shares))


def _within(evidence: Evidence, place: int, vector: Array) -> Array:
    """Keep one input's share of a vector."""
    kept = np.zeros_like(vector)
    part = evidence.problem.domain.part(place)
    kept[part] = vector[part]
    return kept


def _goes_along(evidence: Evidence, place: int) -> bool:
    """Tell whether the claim, on a large scale, has the sign of what the function does; a constant has none.

    How large is not known: the steps of a codebook may be far apart beside its inputs.
    """
    return any(_alike(evidence, place, wide, pairs) for wide, pairs in (*WIDE.items(), (0.0, 48)))


def _alike(evidence: Evidence, place: int, wide: float, pairs: int) -> bool:
    """Set the change of ⟨v, f⟩ between far points beside ⟨claim, displacement⟩ in their middle.

    No width stands for points between the entries: a probability goes no further.
    """
    problem, rng = evidence.problem, evidence.settings.rng(84)
    size = wide * 16 * floor_of(problem.x)
    changes, claims = [], []
    for i in range(pairs):
        reach = size * (0.5, 1.0, 2.0)[i % 3]
        middle = problem.x + _within(evidence, place, 0.5 * size * rng.normal(size=problem.x.size))
        half = _within(evidence, place, reach * signed(rng, problem.x.size)) / 2
        if not wide:
            ends = [_within(evidence, place, _between(evidence, rng) - problem.x) for _ in range(2)]
            middle, half = problem.x + (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
        v = signed(rng, problem.y.size)
        try:
            before, after = problem.evaluate(middle - half)[1], problem.evaluate(middle + half)[1]
            change, claim = float(v @ (after - before)), 2 * float(problem.gradient(v, middle) @ half)
        except Exception:  # a pullback may refuse a point in any way it likes
            continue
        if np.isfinite([change, claim]).all():
            changes.append(change)
            claims.append(claim)
    a, b = np.array(changes), np.array(claims)
    if len(a) < pairs // 4 or not a.any() or not b.any():
        return False
    return bool(a @ b > ALIKE * np.linalg.norm(a) * np.linalg.norm(b))


def _of_clip(evidence: Evidence, place: int, points: list[Array]) -> Surrogate | None:
    """Recognise a clip that passes `dy` through: the identity between two bounds, flat beyond both."""
    problem, part = evidence.problem, evidence.problem.domain.part(place)
    x = problem.x[part]
    if problem.y.size != x.size:
        return None
    far = 1e4 * max(16 * floor_of(problem.x), 1.0)
    for side in (far, -far):
        point = problem.x.copy()
        point[part] = side
        if not np.isfinite(problem.evaluate(point)[1]).all() or _share_unmoved(evidence, place, point) < 1:
            return None
    same = 0
    for point in points:
        reached, y = problem.evaluate(point)
        is_same = y == reached[part]
        moved = problem.evaluate(point + _within(evidence, place, 2.0**-12 * np.abs(point)))[1]
        if not (is_same | (moved == y)).all():
            return None
        same += int(is_same.sum())
        if not np.array_equal(problem.gradient(evidence.vs[0], point)[part], evidence.vs[0]):
            return None
    if not same:
        return None
    seen = f"the function clips `{evidence.name(place)}`, and the gradient is `dy`, passed through"
    return Surrogate("straight-through", seen, place)


# ── the words ────────────────────────────────────────────────────────────────────────────────────────────


def how_to_declare(known: KnownAs, reason: str) -> str:
    """Write the lines that declare a rule, those that fit its kind."""
    if known.kind == "pullback":
        return f'if that is meant, declare it: `@pb.custom_gradient(differs="{reason}")`'
    name = known.name.rpartition(".")[2] or "f"
    if not name.isidentifier():
        name = "f"
    return "\n".join(
        [
            "if that is meant, declare it, in one of these ways:",
            f'# pullback: differs="{reason}"  (a comment on the line of its definition)',
            f'pb.declare({name}, differs="{reason}")',
            f'[tool.pullback.rules."{known.qualified}"]  (in pyproject.toml)',
            f'differs = "{reason}"',
        ]
    )
