"""An external function as an operation of a framework.

The values are computed by the framework's callback, outside of any rule; a graft gives them their gradient,
which is another callback. So a higher derivative never runs the function again for values that are there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pullback.hosts.base import Host
from pullback.hosts.operation import Tensor
from pullback.plan import Plan
from pullback.replace.graft import Graft
from pullback.replace.with_gradient import pulled
from pullback.wrapping.second import Pulling
from pullback.wrapping.shapes import Layout
from pullback.wrapping.site import Promised, Site


def run(site: Site, plan: Plan, tensors: list[Tensor]) -> Any:
    """Run one call."""
    host = plan.host
    if host.idle(tensors):
        now = Now(site, host, tensors)
        values = host.callback(now, tensors, now)
        return now.layout.outputs.filled(values)
    values, layout = bare(site, host, tensors)
    if not any(map(host.differentiable, values)) or not any(map(host.differentiable, tensors)):
        return layout.outputs.filled(values)
    return Wrapped(site, plan, layout).applied(values, tensors)


def bare(site: Site, host: Host, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Layout]:
    """Run the function of a call, its inputs cut off: values that nobody can differentiate."""
    tensors = host.stopped(tensors)
    promised = site.promised(host, tensors)
    try:
        values = host.callback(site.forward, tensors, promised)
    finally:
        site.forward.forget()
    return values, promised.layout


class Now(Promised):
    """A call that is run at once, because nobody differentiates or traces it.

    A host takes the function and the specs that its outputs will have. Here both are one object: the specs
    are read off what the function returned, and nothing is tried beforehand.
    """

    token: int  # from the host

    def __init__(self, site: Site, host: Host, tensors: Sequence[Tensor]) -> None:
        self.site = site
        self.host = host
        self.tensors = tensors
        self._known = None
        self.name = site.rule.name
        self.where = site.rule.where

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        results, self._known = self.site.forward.known(arrays)
        return results

    def batch(self, arrays: Sequence[Any], mapped: Sequence[bool]) -> list[Any]:
        return self.site.forward.batch(arrays, mapped)


class Wrapped(Graft):
    """The operation (values, tensors) ↦ values of one call."""

    def __init__(self, site: Site, plan: Plan, layout: Layout) -> None:
        super().__init__(plan, layout.outputs, len(layout.specs), pull)
        self.site = site
        self.layout = layout
        self.external = site.external
        self.order = site.external.order
        self.has_pushforward = True

    def pushforward(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor]:
        """Take tangents of the arguments to tangents of the values."""
        host = self.host
        values, sources = list(tensors[: self.count]), list(tensors[self.count :])
        moved = [
            host.zeros(host.outline(x)) if t is None else t
            for x, t in zip(sources, tangents[self.count :])
            if host.differentiable(x)
        ]
        kept = [v for v in values if host.differentiable(v)]
        foreign = self.external.forth(self.site, self.layout)
        given = iter(host.callback(foreign, [*moved, *sources, *values], [host.spec(v) for v in kept]))
        return [next(given) if host.differentiable(v) else host.zeros(host.outline(v)) for v in values]

    @property
    def last_order(self) -> tuple[str, str]:
        """Say why there is no second derivative, and what to write."""
        name = self.external.name
        return (
            "first derivatives only: no framework can see into its gradient",
            f'second="central", which takes differences of the gradient;\nor @{name}.pullback\n'
            "   @pb.external(output=lambda dy, x: x)\n   def pull(dy, x): …\n"
            "and then @pull.pullback",
        )


def pull(graft: Graft, tensors: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
    """Give no cotangent to the values, and to each argument its own."""
    assert isinstance(graft, Wrapped)
    host, external = graft.host, graft.external
    values, sources = list(tensors[: graft.count]), list(tensors[graft.count :])
    none: list[Any] = [None] * graft.count
    if external.pull_is_external:
        function, output = external.role("pullback"), functools.partial(graft.output, tensors)
        return none + pulled(function, graft.plan, graft.outputs, sources, cotangents, output)
    foreign = external.back(graft.site, graft.layout)
    moving = [x for x in sources if host.differentiable(x)]
    dys = [dy for dy, v in zip(cotangents, values) if host.differentiable(v)]
    given = [*dys, *sources, *values]
    if external.options.second is None:
        results = host.callback(foreign, given, [host.spec(x) for x in moving])
    else:
        results = host.apply(Pulling(graft, foreign, len(dys)), given)
    found = iter(results)
    return none + [next(found) if host.differentiable(x) else None for x in sources]
