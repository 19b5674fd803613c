"""What users say of a derivative, as routines: a pullback, a pushforward, a Jacobian, partial derivatives.

Every routine of the way back takes [*dys, *tensors, *values] and gives a cotangent per smooth tensor; every
one of the way forth takes [*tangents, *tensors, *values] and gives a tangent per smooth value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback import contract, tree
from pullback.errors import CotangentShapeError
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.specs import show_shape
from pullback.replace import with_gradient
from pullback.tangent import settle as settle_tangents
from pullback.wrapping import guard, jacobian
from pullback.wrapping.foreign import Array, Point, Routine, batch_size, element, elements, empty, stacked
from pullback.wrapping.shapes import ArraySpec, Layout, chosen, of_array, smooth

if TYPE_CHECKING:
    from pullback.wrapping.site import Site


class Parts(NamedTuple):
    """The arrays of a derivative, taken apart."""

    leading: list[Array]  # cotangents of the smooth values, or tangents of the smooth tensors
    tensors: list[Array]
    values: list[Array]
    layout: Layout

    @property
    def moving(self) -> list[Array]:
        """The tensors that a gradient can flow to."""
        return [t for t in self.tensors if smooth(t.dtype)]

    @property
    def results(self) -> list[Array]:
        """The values that a gradient can flow from."""
        return [v for v in self.values if smooth(v.dtype)]


def apart(site: Site, layout: Layout, arrays: Sequence[Array]) -> Parts:
    """Take the arrays of a derivative apart."""
    behind = len(arrays) - len(layout.specs)
    cut = behind - site.count
    return Parts(list(arrays[:cut]), list(arrays[cut:behind]), list(arrays[behind:]), layout)


class Derivative(Routine):
    """A routine that a derivative is computed by."""

    def __init__(self, site: Site, layout: Layout) -> None:
        super().__init__(site)
        self.layout = layout

    def parts(self, arrays: Sequence[Array]) -> Parts:
        """Take the arrays apart."""
        return apart(self.site, self.layout, arrays)

    def name_of(self, index: int) -> str:
        return "dy" if index == 0 else f"argument {index}"

    def output(self, parts: Parts) -> Any:
        """Put the values together as the function returned them."""
        return tree.unflatten(parts.layout.tree, parts.values)

    def settle(
        self, returned: Any, arrays: list[Array], label: str, lead: tuple[int, ...] = ()
    ) -> list[Array]:
        results = self.derive(returned, self.parts(arrays), label)
        if not self.options.allow_nan:
            guard.refuse_nan(results, arrays, where=self.where, what=self.what, label=label)
        return results

    def derive(self, returned: Any, parts: Parts, label: str) -> list[Array]:
        """Make cotangents or tangents of what was returned."""
        raise NotImplementedError

    def specs(self, arrays: list[Array]) -> Sequence[ArraySpec]:
        return [of_array(t) for t in self.parts(arrays).moving]


class Pullback(Derivative):
    """The user's pullback."""

    role = "pullback"
    what = "what its pullback gives"

    def arguments(self, arrays: Sequence[Array]) -> tuple[list[Any], dict[str, Any]]:
        parts = self.parts(arrays)
        given = iter(parts.leading)
        dys = [next(given) if smooth(v.dtype) else None for v in parts.values]
        return with_gradient.chosen(
            self.external.role(self.role),
            self.site.plan,
            parts.tensors,
            parts.layout.outputs.arranged(dys),
            lambda: self.output(parts),
        )

    def derive(self, returned: Any, parts: Parts, label: str) -> list[Array]:
        moving = parts.moving
        if len(moving) == 1 and NUMPY.fit([returned], moving):
            return [returned]
        function = self.external.role(self.role)
        settled = contract.settle(returned, self.site.plan, parts.tensors, (), function).inputs
        return [
            np.zeros_like(t) if c is None else np.asarray(c)
            for c, t in zip(settled, parts.tensors)
            if smooth(t.dtype)
        ]


class Pushforward(Derivative):
    """The user's pushforward."""

    role = "pushforward"
    what = "what its pushforward gives"

    def arguments(self, arrays: Sequence[Array]) -> tuple[list[Any], dict[str, Any]]:
        parts = self.parts(arrays)
        given = iter(parts.leading)
        tangents = [next(given) if smooth(t.dtype) else np.zeros_like(t) for t in parts.tensors]
        plan = self.site.plan
        moved = [slot.filled(tangents) for slot in plan.moving]
        function = self.external.role(self.role)
        return with_gradient.chosen(
            function, plan, parts.tensors, moved, lambda: self.output(parts), "tangent"
        )

    def derive(self, returned: Any, parts: Parts, label: str) -> list[Array]:
        function = self.external.role(self.role)
        tangents = settle_tangents(returned, parts.layout.outputs, self.site.rule, function, NUMPY)
        return fitted(tangents, parts, self.where, "its pushforward")

    def specs(self, arrays: list[Array]) -> Sequence[ArraySpec]:
        return [of_array(v) for v in self.parts(arrays).results]


def fitted(tangents: Sequence[Any], parts: Parts, where: str, who: str) -> list[Array]:
    """Hold tangents against the values that they belong to."""
    results = []
    for tangent, value in zip(tangents, parts.values):
        if not smooth(value.dtype):
            continue
        array = np.zeros_like(value) if tangent is None else np.asarray(tangent)
        if array.shape != value.shape:
            raise CotangentShapeError.about(
                where,
                found=f"{who} gave {show_shape(array.shape)} for an output of {show_shape(value.shape)}",
                expected="a tangent of its output's shape",
                fix="return one tangent per output",
            )
        results.append(array.astype(value.dtype, copy=False))
    return results


class ByMatrix(Derivative):
    """What a Jacobian or partial derivatives have in common: a function of the arguments, then a product.

    They are called one element at a time: a matrix of a batch has no common form.
    """

    def __init__(self, site: Site, layout: Layout, *, back: bool) -> None:
        super().__init__(site, layout)
        self.batched = False
        self.back = back

    def arguments(self, arrays: Sequence[Array]) -> tuple[list[Any], dict[str, Any]]:
        parts = self.parts(arrays)
        names = self.site.plan.named(parts.tensors) | {"output": self.output(parts)}
        whole = self.site.plan.arguments(parts.tensors)
        return chosen(self.external.role(self.role), whole, names)

    def derive(self, returned: Any, parts: Parts, label: str) -> list[Array]:
        blocks = self.blocks(returned, parts)
        if self.back:
            return jacobian.pulled(blocks, parts.leading, parts.moving, self.product)
        return jacobian.pushed(blocks, parts.leading, parts.results, self.product)

    def blocks(self, returned: Any, parts: Parts) -> list[list[Any]]:
        """Give the blocks, one per smooth value and smooth tensor."""
        names = [name for name, t in zip(self.site.names, parts.tensors) if smooth(t.dtype)]
        kept = [smooth(t.dtype) for t in parts.tensors]
        return jacobian.arranged(returned, len(parts.results), kept, names, self.where, self.role)

    def product(self, block: Any, vector: Array, like: Array, back: bool) -> Array:
        """Multiply by a block, or by its adjoint."""
        raise NotImplementedError

    def specs(self, arrays: list[Array]) -> Sequence[ArraySpec]:
        parts = self.parts(arrays)
        return [of_array(a) for a in (parts.moving if self.back else parts.results)]


class Jacobian(ByMatrix):
    """The user's Jacobian: dense, sparse, or an operator."""

    role = "jacobian"
    what = "the product with its Jacobian"

    def product(self, block: Any, vector: Array, like: Array, back: bool) -> Array:
        return jacobian.product(block, vector, like, back, self.where)


class Partials(ByMatrix):
    """The user's partial derivatives of an elementwise function."""

    role = "partials"
    what = "the product with its partial derivatives"

    def product(self, block: Any, vector: Array, like: Array, back: bool) -> Array:
        return jacobian.elementwise(block, vector, like, back, self.where)


# ── derivatives that take several runs ───────────────────────────────────────────────────────────────────

Gather = Callable[[Iterator[list[Array]]], list[Array]]


class Composite:
    """A derivative that is put together from several runs of a routine."""

    token: int  # from the host

    def __init__(self, site: Site, layout: Layout, routine: Routine) -> None:
        self.site = site
        self.layout = layout
        self.external = site.external
        self.name = site.rule.name
        self.where = site.rule.where
        self.routine = routine

    def plan(self, arrays: list[Array], label: str) -> tuple[Iterator[Point], Gather]:
        """Say where the routine is run, and how the results are put together."""
        raise NotImplementedError

    def specs(self, arrays: list[Array]) -> Sequence[ArraySpec]:
        """Say what the results will be, for a batch without elements."""
        return [of_array(t) for t in apart(self.site, self.layout, arrays).moving]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        points, gather = self.plan(list(arrays), "")
        return gather(self.routine.stream(points))

    def batch(self, arrays: Sequence[Array], mapped: Sequence[bool]) -> list[Array]:
        """Run it for a batch: the runs of all elements go to the executor together."""
        count = batch_size(arrays, mapped)
        if not count:
            return empty(self.specs(element(arrays, mapped, None)))
        plans = [self.plan(list(point.arrays), point.label) for point in elements(arrays, mapped, count)]
        stream = self.routine.stream(point for points, _ in plans for point in points)
        return stacked([gather(stream) for _, gather in plans])


class FromPushforward(Composite):
    """The way back from a pushforward: the Jacobian, column by column."""

    def plan(self, arrays: list[Array], label: str) -> tuple[Iterator[Point], Gather]:
        from pullback.checker.space import Space

        parts = apart(self.site, self.layout, arrays)
        inputs, outputs = Space.of(parts.moving), Space.of(parts.results)
        v = outputs.pack(parts.leading)
        behind = [*parts.tensors, *parts.values]
        prefix = f"{label}, " if label else ""

        def points() -> Iterator[Point]:
            for j in range(inputs.size):
                unit = np.zeros(inputs.size)
                unit[j] = 1.0
                yield Point([*inputs.unpack(unit), *behind], f"{prefix}column {j} of {inputs.size}")

        def gather(stream: Iterator[list[Array]]) -> list[Array]:
            return list(inputs.unpack(np.array([v @ outputs.pack(next(stream)) for _ in range(inputs.size)])))

        return points(), gather
