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
from pullback.errors import ExternalGradientError
from pullback.wrapping.confirm import Columns, Direction
from pullback.wrapping.derivatives import Composite, Gather, apart
from pullback.wrapping.foreign import Forward, Point
from pullback.wrapping.local import Local, Steps, complex_arrays, imaginary_part
from pullback.wrapping.noise import relative_noise
from pullback.wrapping.shapes import ArraySpec, Layout, chosen
from pullback.wrapping.site import Site
from pullback.wrapping.sparsity import Pattern, pattern_of

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


class Differences(Composite):
    """A gradient by differences."""

    def __init__(self, site: Site, layout: Layout, scheme: Scheme) -> None:
        super().__init__(site, layout, Complexified(site) if scheme.name == "complex-step" else site.forward)
        self.scheme = scheme
        self.noises: dict[Any, float] = {}
        self.patterns: dict[Any, Pattern | None] = {}
        self.verified: set[Any] = set()
        self.taken: dict[Any, int] = {}  # gradients, where there is a pattern

    # ── what is measured once ────────────────────────────────────────────────────────────────────────────

    def noise(self, local: Local) -> float:
        """Measure the noise, once per kind of argument."""
        key = (local.inputs, local.outputs)
        if key not in self.noises:
            self.noises[key] = self._measured(local)
        return self.noises[key]

    def noisier(self, local: Local) -> float:
        """Measure the noise again, elsewhere: at a point of round numbers there may seem to be none."""
        key = (local.inputs, local.outputs)
        self.noises[key] = max(self.noises.get(key, 0.0), self._measured(local))
        return self.noises[key]

    def _measured(self, local: Local) -> float:
        forward = self.site.forward

        def evaluate(vectors: Sequence[Array]) -> list[Array]:
            points = (Point(local.arrays(v), "while its noise was measured") for v in vectors)
            return [local.values(results) for results in forward.stream(points)]

        return relative_noise(evaluate, local.x, local.y, local.sizes, local.unit)

    def nearby(self, local: Local, lengths: Array) -> Local:
        """Look at the function at another point, away from kinks and from zeros of all derivatives.

        It is so far away that what is of higher order at a zero is small against what is not.
        """
        relative = 0.0 if self.scheme.name == "complex-step" else self.step(local)
        tensors = local.arrays(local.x + min(max(256 * relative, 0.01), 0.5) * local.sizes * lengths)
        values = next(self.site.forward.stream([Point(tensors, "while its gradient was confirmed")]))
        return Local.of(local.parts._replace(tensors=tensors, values=values))

    def step(self, local: Local) -> float:
        """Give the relative step."""
        return self.scheme.relative(self.noise(local) if self.scheme.step is None else 0.0)

    def groups(self, local: Local) -> tuple[list[Array], Pattern | None]:
        """List the columns that are moved together."""
        declared = self.external.options.sparsity
        if declared is None:
            return [], None
        key = (local.inputs, local.outputs)
        pattern = self.patterns.get(key)
        if pattern is None:
            if callable(declared) and not hasattr(declared, "tocoo"):
                specs = [ArraySpec(t.shape, t.dtype) for t in local.parts.tensors]
                args, kwargs = chosen(declared, self.site.plan.arguments(specs), self.site.plan.named(specs))
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
        h = self.steps(local)
        steps = Steps(self.scheme, local)
        prefix = f"{label}, " if label else ""
        groups, pattern = self.groups(local)
        if pattern is not None:
            return self._sparse(Columns(steps, pattern, groups, h), v, prefix)
        total = local.inputs.size

        def points() -> Iterator[Point]:
            for k in range(total):
                yield from steps.points(steps.single(h, k), f"{prefix}difference {k} of {total}")

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            gradient = np.zeros(total)
            for k in range(total):
                change, made = steps.change(steps.single(h, k), stream)
                gradient[k] = v @ change / made[k]
            return list(local.inputs.unpack(gradient))

        return points(), gather

    def steps(self, local: Local) -> Array:
        """Give the step of each coordinate."""
        if self.scheme.name == "complex-step":
            return local.sizes * self._tiny(local)
        return local.sizes * self.step(local)

    def _sparse(self, columns: Columns, v: Array, prefix: str) -> tuple[Iterator[Point], Gather]:
        """Move columns together; confirm now and then that no row depends on more than the pattern says."""
        local = columns.steps.local
        key = (local.inputs, local.outputs)
        taken = self.taken.get(key, 0) + 1
        confirmed = 10 ** (len(str(taken)) - 1) == taken  # the first gradient, the tenth, the hundredth …
        direction = Direction(columns, taken) if confirmed else None

        def points() -> Iterator[Point]:
            yield from columns.points(prefix)
            if direction is not None:
                yield from direction.points(prefix)

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            gradient = np.zeros(local.inputs.size)
            for i, j, quotient in columns.quotients(stream):
                np.add.at(gradient, j, v[i] * quotient)
                if direction is not None:
                    direction.entries.append((i, j, quotient))
            noise = self.noises.get(key, local.unit)
            if direction is not None and direction.disagrees(stream, noise):
                direction.accuse(self)
                if self.scheme.step is None and self.noises[key] > noise:  # the steps were too short
                    return self([*local.parts.leading, *local.parts.tensors, *local.parts.values])
            self.taken[key] = self.taken.get(key, 0) + 1
            return list(local.inputs.unpack(gradient))

        return points(), gather

    def _spsa(self, local: Local, v: Array, label: str) -> tuple[Iterator[Point], Gather]:
        # The signs depend on the point and the seed only: the same call gives the same gradient, wherever
        # and in whatever order it runs.
        entropy = [self.scheme.seed, zlib.crc32(local.x.tobytes())]
        h = local.sizes * self.step(local)
        prefix = f"{label}, " if label else ""

        def ends() -> Iterator[tuple[Array, Array]]:
            rng = np.random.default_rng(entropy)
            for _ in range(self.scheme.samples):
                move = h * rng.choice([-1.0, 1.0], local.inputs.size)
                yield local.x + move, local.x - move

        def points() -> Iterator[Point]:
            for k, pair in enumerate(ends()):
                for vector in pair:
                    yield Point(local.arrays(vector), f"{prefix}sample {k} of {self.scheme.samples}")

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            gradient = np.zeros(local.inputs.size)
            for up, down in ends():
                change = local.values(next(stream)) - local.values(next(stream))
                gradient += v @ change / (local.reached(up) - local.reached(down))
            return list(local.inputs.unpack(gradient / self.scheme.samples))

        return points(), gather

    # ── the complex step ─────────────────────────────────────────────────────────────────────────────────

    def _tiny(self, local: Local) -> float:
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
            signs = rng.choice([-1.0, 1.0], local.inputs.size)
            if self._gap(local, tiny, signs, local.unit) is not None:
                near = self.nearby(local, signs * rng.uniform(0.5, 1.0, signs.size))
                gap = self._gap(near, tiny, signs, self.noisier(near))
                if gap is not None:
                    raise ExternalGradientError.about(
                        self.where,
                        found=f"the complex step and a difference disagree by {gap:.1%}",
                        expected="a function that is analytic: no abs, max, comparison, conj or real inside",
                        why="the complex step is the derivative only of such a function",
                        fix='gradient="central"',
                    )
            self.verified.add(key)
        return tiny

    def _gap(self, local: Local, tiny: float, signs: Array, noise: float) -> float | None:
        """Tell by how much the complex step and a coarse difference disagree; None if they do not."""
        u = local.sizes * signs
        stepped = next(self.routine.stream([Point(complex_arrays(local, tiny * u), "by a complex step")]))
        exact = imaginary_part(local, stepped) / tiny
        h = (3 * noise) ** (1 / 3)
        up, down = (
            local.values(results)
            for results in self.site.forward.stream(
                [Point(local.arrays(local.x + h * u)), Point(local.arrays(local.x - h * u))]
            )
        )
        coarse = (up - down) / (2 * h)
        size = max(float(np.linalg.norm(coarse)), float(np.linalg.norm(exact)))
        gap = float(np.linalg.norm(coarse - exact))
        limit = max(1e-4 if local.unit < 1e-12 else 2e-2, Scheme("central").accuracy(noise))
        wrong = gap > limit * size + 16 * noise / h * float(np.linalg.norm(local.y))
        return gap / size if wrong else None


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
            tiny = self.differences._tiny(local) / longest
            point = Point(complex_arrays(local, tiny * t), label)
            return iter([point]), lambda stream: list(
                local.outputs.unpack(imaginary_part(local, next(stream)) / tiny)
            )
        h = self.differences.step(local) / longest
        one_sided = scheme.name == "forward"
        points = [local.x + h * t] if one_sided else [local.x + h * t, local.x - h * t]

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            up = local.values(next(stream))
            down = local.y if one_sided else local.values(next(stream))
            return list(local.outputs.unpack((up - down) / (h if one_sided else 2 * h)))

        return iter([Point(local.arrays(point), label) for point in points]), gather
