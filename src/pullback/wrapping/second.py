"""The second derivative, by differences of the pullback, when that was asked for.

With P(dy, x) the pullback and H the Hessian of ⟨dy, f⟩, which is symmetric where P is a derivative:
    reverse   ddx ↦ (J·ddx for dy, H·ddx for x)      forward   (ẏ, ẋ) ↦ P(ẏ, x) + H·ẋ
H·t is a central difference of P along t, two evaluations of f and of P, whatever the size of x is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.hosts.operation import Cotangents, Derived, Pullback, Tensor, filled
from pullback.wrapping.derivatives import apart
from pullback.wrapping.foreign import Array, Point, Routine, batch_size, element, elements, empty, stacked
from pullback.wrapping.local import Local
from pullback.wrapping.shapes import of_array

if TYPE_CHECKING:
    from pullback.wrapping.operation import Wrapped


class Pulling(Derived):
    """The operation [*dys, *tensors, *values] ↦ cotangents, with a derivative."""

    def __init__(self, wrapped: Wrapped, foreign: Any, count: int) -> None:
        super().__init__(wrapped)
        self.wrapped = wrapped
        self.foreign = foreign
        self.count = count  # of the dys
        self.order = 1
        self.has_pushforward = True
        self.identity = Pulling
        self.last_order = (
            "two derivatives: the second is a difference already",
            "take differences of the second derivative outside",
        )

    def moving(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Give the arguments that a gradient can flow to."""
        sources = tensors[self.count : len(tensors) - self.wrapped.count]
        return [x for x in sources if self.host.differentiable(x)]

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Any]:
        specs = [self.host.spec(x) for x in self.moving(tensors)]
        return self.host.callback(self.foreign, list(tensors), specs), PullingPullback(self, list(tensors))

    def along(self, tensors: Sequence[Tensor], moves: Sequence[Tensor]) -> list[Tensor]:
        """Give H·t."""
        wrapped = self.wrapped
        known = wrapped.site.routines
        key = ("bend", wrapped.layout.form)
        bend = known.get(key)
        if bend is None:  # one object a site: compiled programs know it by its identity
            bend = known[key] = Bend(wrapped.site, wrapped.layout, self.foreign, self.count)
        specs = [self.host.spec(x) for x in self.moving(tensors)]
        return self.host.callback(bend, [*moves, *tensors], specs)

    def pushforward(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
        host = self.host
        behind = len(tensors) - self.wrapped.count
        filled = [host.zeros(host.outline(x)) if t is None else t for x, t in zip(tensors, tangents)]
        turned = [*filled[: self.count], *tensors[self.count :]]
        specs = [host.spec(x) for x in self.moving(tensors)]
        first = host.callback(self.foreign, turned, specs)
        pairs = zip(filled[self.count : behind], tensors[self.count : behind])
        moves = [t for t, x in pairs if host.differentiable(x)]
        return [a + b for a, b in zip(first, self.along(tensors, moves))]


class PullingPullback(Pullback):
    """Pull cotangents of cotangents back."""

    def __init__(self, pulling: Pulling, tensors: list[Tensor]) -> None:
        self.pulling = pulling
        self.tensors = tensors

    def zeros(self) -> list[Tensor]:
        host = self.pulling.host
        return [host.zeros(host.outline(x)) for x in self.pulling.moving(self.tensors)]

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        pulling, host = self.pulling, self.pulling.host
        wrapped, count = pulling.wrapped, pulling.count
        moves = filled(self, cotangents)
        behind = len(self.tensors) - wrapped.count
        dys, sources, values = self.tensors[:count], self.tensors[count:behind], self.tensors[behind:]
        forth = wrapped.external.forth(wrapped.site, wrapped.layout)
        to_dys = host.callback(forth, [*moves, *sources, *values], [host.spec(dy) for dy in dys])
        bent = iter(pulling.along(self.tensors, moves))
        to_sources = [next(bent) if host.differentiable(x) else None for x in sources]
        return Cotangents([*to_dys, *to_sources, *[None] * len(values)], [])


class Bend:
    """H·t: how the pullback changes along t. Takes [*t, *dys, *tensors, *values]."""

    token: int  # from the host

    def __init__(self, site: Any, layout: Any, back: Any, count: int) -> None:
        self.site = site
        self.layout = layout
        self.back = back
        self.count = count
        self.name = site.rule.name
        self.where = site.rule.where
        self.scheme = site.external.options.second

    def __call__(self, arrays: Sequence[Array], label: str = "") -> list[Array]:
        moves = len(arrays) - self.count - self.site.count - len(self.layout.specs)
        parts = apart(self.site, self.layout, arrays[moves:])
        local = Local.of(parts)
        t = local.inputs.pack(list(arrays[:moves]))
        longest = float(np.max(np.abs(t) / local.sizes, initial=0.0))
        if longest == 0.0:
            return list(local.inputs.unpack(np.zeros(local.inputs.size)))
        h = self.scheme.relative(self._noise(local)) / longest
        one_sided = self.scheme.name == "forward"
        points = [local.x + h * t, local.x if one_sided else local.x - h * t]
        tensors = [local.arrays(point) for point in points]
        values = list(self.site.forward.stream(Point(moved, label) for moved in tensors))
        asked = [[*parts.leading, *moved, *there] for moved, there in zip(tensors, values)]
        if isinstance(self.back, Routine):
            ends = list(self.back.stream(Point(list(a), label) for a in asked))
        else:
            ends = [self.back(a) for a in asked]
        up, down = (local.inputs.pack(end) for end in ends)
        return list(local.inputs.unpack((up - down) / (h if one_sided else 2 * h)))

    def _noise(self, local: Local) -> float:
        """Tell how exact the pullback is: to rounding, or as a difference is."""
        scheme = getattr(self.back, "scheme", None)
        return local.unit if scheme is None else float(scheme.accuracy(self.back.noise(local)))

    def batch(self, arrays: Sequence[Array], mapped: Sequence[bool]) -> list[Array]:
        count = batch_size(arrays, mapped)
        if not count:
            first = element(arrays, mapped, None)
            moves = len(arrays) - self.count - self.site.count - len(self.layout.specs)
            return empty([of_array(a) for a in first[:moves]])
        return stacked([self(point.arrays, point.label) for point in elements(arrays, mapped, count)])
