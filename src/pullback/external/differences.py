"""Gradients by differences: central, forward, complex step, simultaneous perturbation.

With noise η (relative, measured once) and coordinates moved by h·size:
    forward       (f(x+h) − f(x)) / h           h = 2·η^½     accurate to about η^½
    central       (f(x+h) − f(x−h)) / 2h        h = (3η)^⅓    accurate to about η^⅔
    complex-step  Im f(x+ih) / h                h tiny        accurate to rounding, if f is analytic
    spsa          Δ⁻¹·(f(x+hΔ) − f(x−hΔ)) / 2h  h as central  right on average over signs Δ
What a step was after rounding is divided by, never what it was meant to be. Columns that a declared sparsity
lets move together are moved together.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import tree
from pullback.check.space import Space, roundoff
from pullback.errors import ExternalGradientError
from pullback.external.derivatives import Composite, Gather, Parts, apart
from pullback.external.foreign import Forward, Point
from pullback.external.noise import relative_noise, scales
from pullback.external.shapes import ArraySpec, Layout, chosen, smooth
from pullback.external.site import Site
from pullback.external.sparsity import Pattern, pattern_of

Array = np.ndarray[Any, Any]
SCHEMES = ("central", "forward", "complex-step", "spsa")


@dataclass(frozen=True)
class Scheme:
    """Name a difference scheme, and what it needs to know."""

    name: str
    step: float | None = None  # relative; found from the noise if it is not given
    samples: int = 1
    seed: int = 0

    def relative(self, noise: float) -> float:
        """Choose the relative step for a noise."""
        if self.step is not None:
            return self.step
        return float(min(2 * noise**0.5 if self.name == "forward" else (3 * noise) ** (1 / 3), 0.1))

    def accuracy(self, noise: float) -> float:
        """Tell to what fraction of its size a gradient is known, for a function of moderate curvature."""
        if self.name == "complex-step":
            return 8 * noise
        if self.name == "spsa":
            return 1.0
        if self.step is not None:
            truncation = self.step if self.name == "forward" else self.step**2
            return 8 * (truncation + noise / self.step)
        return float(8 * (noise**0.5 if self.name == "forward" else noise ** (2 / 3)))


@dataclass
class Local:
    """A function near one point, as a map of real vectors."""

    parts: Parts
    inputs: Space
    outputs: Space
    x: Array
    y: Array
    sizes: Array
    moving: list[int]  # the places of the smooth tensors
    kept: list[bool]  # which values are smooth

    @classmethod
    def of(cls, parts: Parts) -> Local:
        """Look at the arrays of a derivative."""
        moving = [i for i, t in enumerate(parts.tensors) if smooth(t.dtype)]
        inputs, outputs = Space.of(parts.moving), Space.of(parts.results)
        x = inputs.pack(parts.moving)
        slices = [inputs.part(k) for k in range(len(moving))]
        kept = [smooth(v.dtype) for v in parts.values]
        return cls(parts, inputs, outputs, x, outputs.pack(parts.results), scales(x, slices), moving, kept)

    @property
    def unit(self) -> float:
        """The coarsest rounding among arguments and values."""
        return max(roundoff(self.parts.moving), roundoff(self.parts.results))

    def arrays(self, vector: Array) -> list[Array]:
        """Give the tensors of the call with the smooth ones moved."""
        tensors = list(self.parts.tensors)
        for place, array in zip(self.moving, self.inputs.unpack(vector)):
            tensors[place] = array
        return tensors

    def reached(self, vector: Array) -> Array:
        """Give where a vector really is, after rounding."""
        return self.inputs.pack(self.inputs.unpack(vector))

    def values(self, results: Sequence[Array]) -> Array:
        """Pack the smooth results."""
        return self.outputs.pack([r for r, keep in zip(results, self.kept) if keep])


class Differences(Composite):
    """A gradient by differences."""

    def __init__(self, site: Site, layout: Layout, scheme: Scheme) -> None:
        super().__init__(site, layout, Complexified(site) if scheme.name == "complex-step" else site.forward)
        self.scheme = scheme
        self.noises: dict[Any, float] = {}
        self.patterns: dict[Any, Pattern | None] = {}
        self.verified: set[Any] = set()

    # ── what is measured once ────────────────────────────────────────────────────────────────────────────

    def noise(self, local: Local) -> float:
        """Measure the noise, once per kind of argument."""
        key = (local.inputs, local.outputs)
        if key not in self.noises:
            forward = self.site.forward

            def evaluate(vectors: Sequence[Array]) -> list[Array]:
                points = (Point(local.arrays(v), "while its noise was measured") for v in vectors)
                return [local.values(results) for results in forward.stream(points)]

            self.noises[key] = relative_noise(evaluate, local.x, local.y, local.sizes, local.unit)
        return self.noises[key]

    def step(self, local: Local) -> float:
        """Give the relative step."""
        return self.scheme.relative(self.noise(local) if self.scheme.step is None else 0.0)

    def groups(self, local: Local) -> tuple[list[Array], Pattern | None]:
        """List the columns that are moved together."""
        declared = self.external.sparsity
        if declared is None:
            return [], None
        key = (local.inputs, local.outputs)
        pattern = self.patterns.get(key)
        if pattern is None:
            if callable(declared) and not hasattr(declared, "tocoo"):
                specs = [ArraySpec(t.shape, t.dtype) for t in local.parts.tensors]
                args, kwargs = chosen(
                    declared, self.site.bound(specs).arguments(specs), self.site.named(specs)
                )
                declared = declared(*args, **kwargs)
            pattern = pattern_of(declared, local.outputs.size, local.inputs.size, self.where)
            self.patterns[key] = pattern
        return [np.flatnonzero(pattern.colours == c) for c in range(pattern.count)], pattern

    # ── the way back ─────────────────────────────────────────────────────────────────────────────────────

    def plan(self, arrays: list[Array], label: str) -> tuple[Iterator[Point], Gather]:
        local = Local.of(apart(self.site, self.layout, arrays))
        v = local.outputs.pack(local.parts.leading)
        if self.scheme.name == "spsa":
            return self._spsa(local, v, label)
        groups, pattern = self.groups(local)
        if pattern is None:
            moves: Any = range(local.inputs.size)
        else:
            moves = groups
        if self.scheme.name == "complex-step":
            h = local.sizes * self._tiny(local, label)
        else:
            h = local.sizes * self.step(local)
        two_sided = self.scheme.name == "central"
        place = f"{label}, " if label else ""
        total = len(moves)

        def ends(move: Any) -> list[Array]:
            displaced = []
            for sign in (1.0, -1.0) if two_sided else (1.0,):
                vector = local.x.copy()
                vector[move] += sign * h[move]
                displaced.append(vector)
            return displaced

        def points() -> Iterator[Point]:
            for k, move in enumerate(moves):
                name = f"{place}difference {k} of {total}"
                if self.scheme.name == "complex-step":
                    yield Point(self._imaginary(local, move, h), name)
                else:
                    for vector in ends(move):
                        yield Point(local.arrays(vector), name)

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            gradient = np.zeros(local.inputs.size)
            for k, move in enumerate(moves):
                if self.scheme.name == "complex-step":
                    change, made = _imaginary_part(local, next(stream)), h
                else:
                    reached = [local.reached(vector) for vector in ends(move)]
                    seen = [local.values(next(stream)) for _ in reached]
                    change = seen[0] - (seen[1] if two_sided else local.y)
                    made = reached[0] - (reached[1] if two_sided else local.x)
                if pattern is None:
                    gradient[move] = v @ change / made[move]
                else:
                    held = pattern.colours[pattern.columns] == k
                    i, j = pattern.rows[held], pattern.columns[held]
                    np.add.at(gradient, j, v[i] * change[i] / made[j])
            return list(local.inputs.unpack(gradient))

        return points(), gather

    def _spsa(self, local: Local, v: Array, label: str) -> tuple[Iterator[Point], Gather]:
        # The signs depend on the point and the seed only: the same call gives the same gradient, wherever
        # and in whatever order it runs.
        entropy = [self.scheme.seed, zlib.crc32(local.x.tobytes())]
        h = local.sizes * self.step(local)
        place = f"{label}, " if label else ""

        def ends() -> Iterator[tuple[Array, Array]]:
            rng = np.random.default_rng(entropy)
            for _ in range(self.scheme.samples):
                move = h * rng.choice([-1.0, 1.0], local.inputs.size)
                yield local.x + move, local.x - move

        def points() -> Iterator[Point]:
            for k, pair in enumerate(ends()):
                for vector in pair:
                    yield Point(local.arrays(vector), f"{place}sample {k} of {self.scheme.samples}")

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            gradient = np.zeros(local.inputs.size)
            for up, down in ends():
                change = local.values(next(stream)) - local.values(next(stream))
                gradient += v @ change / (local.reached(up) - local.reached(down))
            return list(local.inputs.unpack(gradient / self.scheme.samples))

        return points(), gather

    # ── the complex step ─────────────────────────────────────────────────────────────────────────────────

    def _imaginary(self, local: Local, move: Any, h: Array) -> list[Array]:
        shift = np.zeros(local.inputs.size)
        shift[move] = h[move]
        return _complex_arrays(local, shift)

    def _tiny(self, local: Local, label: str) -> float:
        """Give the relative step, after one coarse difference has shown that the function is analytic."""
        tiny = 2.0**-66 if local.unit < 1e-12 else 2.0**-30
        key = (local.inputs, local.outputs)
        if any(d.kind == "c" for d in (*local.inputs.dtypes, *local.outputs.dtypes)):
            raise ExternalGradientError.about(
                self.where,
                found='gradient="complex-step" and a complex argument or output',
                expected="real arguments and outputs: the imaginary part is where the step is taken",
                fix='gradient="central"',
            )
        if key not in self.verified:
            rng = np.random.default_rng(4)
            u = local.sizes * rng.choice([-1.0, 1.0], local.inputs.size)
            stepped = next(
                self.routine.stream([Point(_complex_arrays(local, tiny * u), "by a complex step")])
            )
            exact = _imaginary_part(local, stepped) / tiny
            h = (3 * local.unit) ** (1 / 3)
            up, down = (
                local.values(results)
                for results in self.site.forward.stream(
                    [Point(local.arrays(local.x + h * u)), Point(local.arrays(local.x - h * u))]
                )
            )
            coarse = (up - down) / (2 * h)
            size = max(float(np.linalg.norm(coarse)), float(np.linalg.norm(exact)))
            gap = float(np.linalg.norm(coarse - exact))
            limit = 1e-4 if local.unit < 1e-12 else 2e-2
            if gap > limit * size + 16 * local.unit / h * float(np.linalg.norm(local.y)):
                raise ExternalGradientError.about(
                    self.where,
                    found=f"the complex step and a difference disagree by {gap / size:.1%}",
                    expected="a function that is analytic: no abs, max, comparison, conj or real inside",
                    why="the complex step is the derivative only of such a function",
                    fix='gradient="central"',
                )
            self.verified.add(key)
        return tiny


class Complexified(Forward):
    """The function at complex arguments, which must give complex results."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.what = "its output at a complex argument"

    def settle(
        self, returned: Any, arrays: list[Array], label: str, lead: tuple[int, ...] = ()
    ) -> list[Array]:
        leaves = tree.flatten(returned)[0]
        results = [np.asarray(leaf) for leaf in leaves]
        if not any(r.dtype.kind == "c" for r in results):
            raise ExternalGradientError.about(
                self.where,
                found="at a complex argument it returned real numbers",
                expected="complex ones: the derivative is in the imaginary part",
                why="somewhere it drops the imaginary part: a cast, a real array that is filled, C code",
                fix='gradient="central"',
            )
        return results


class Directional(Composite):
    """Forward mode by a difference along the tangent."""

    def __init__(self, site: Site, layout: Layout, differences: Differences) -> None:
        super().__init__(site, layout, differences.routine)
        self.differences = differences

    def specs(self, arrays: list[Array]) -> list[ArraySpec]:
        parts = apart(self.site, self.layout, arrays)
        return [ArraySpec(v.shape, v.dtype) for v in parts.results]

    def plan(self, arrays: list[Array], label: str) -> tuple[Iterator[Point], Gather]:
        local = Local.of(apart(self.site, self.layout, arrays))
        scheme = self.differences.scheme
        t = local.inputs.pack(local.parts.leading)
        longest = float(np.max(np.abs(t) / local.sizes, initial=0.0))
        if longest == 0.0:
            return iter(()), lambda stream: list(local.outputs.unpack(np.zeros(local.outputs.size)))
        if scheme.name == "complex-step":
            tiny = self.differences._tiny(local, label) / longest
            point = Point(_complex_arrays(local, tiny * t), label)
            return iter([point]), lambda stream: list(
                local.outputs.unpack(_imaginary_part(local, next(stream)) / tiny)
            )
        h = self.differences.step(local) / longest
        one_sided = scheme.name == "forward"
        places = [local.x + h * t] if one_sided else [local.x + h * t, local.x - h * t]

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            up = local.values(next(stream))
            down = local.y if one_sided else local.values(next(stream))
            return list(local.outputs.unpack((up - down) / (h if one_sided else 2 * h)))

        return iter([Point(local.arrays(place), label) for place in places]), gather


def _complex_arrays(local: Local, shift: Array) -> list[Array]:
    tensors = list(local.parts.tensors)
    for place, x, dx in zip(local.moving, local.parts.moving, local.inputs.unpack(shift)):
        tensors[place] = (x + 1j * dx.astype(x.dtype)).astype(np.result_type(x.dtype, np.complex64))
    return tensors


def _imaginary_part(local: Local, results: Sequence[Array]) -> Array:
    kept = [r for r, keep in zip(results, local.kept) if keep]
    return local.outputs.pack([np.imag(r) for r in kept])
