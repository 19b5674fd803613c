"""Functions that run again in JAX: `jax.checkpoint`, which is right as it is, in any structure.

JAX draws from keys, so a second run draws the same numbers. What layers of Keras would change is returned,
and left where it belongs afterwards: a traced value must not stay in a layer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import jax

from pullback import outputs
from pullback.hosts.keras import run_on
from pullback.hosts.operation import Tensor
from pullback.plan import Plan
from pullback.recompute.chain import Chain, First, grafted
from pullback.recompute.framework import Body, Framework, Tensors


class Jax(Framework):
    """Run functions again under `jax.checkpoint`."""

    def checkpoint(self, plan: Plan, tensors: list[Tensor], *, looped: bool = False) -> Any:
        if plan.host.idle(tensors):
            args, kwargs = plan.arguments(tensors)
            return plan.host.run(plan.rule.body, args, kwargs, plan.where)
        forms: list[Any] = []

        def run(*tensors: Tensor) -> Any:
            args, kwargs = plan.arguments(tensors)
            changes = _changes()
            with changes or contextlib.nullcontext():
                returned = plan.host.run(plan.rule.body, args, kwargs, plan.where)
            form, values = outputs.of_values(returned, plan.rule, plan.host, tensors)
            forms[:] = [(form, changes.variables if changes else [])]
            return values, changes.values if changes else []

        run.__name__ = plan.rule.name
        values, changed = jax.checkpoint(run, prevent_cse=not looped)(*tensors)
        form, variables = forms[0]
        for variable, value in zip(variables, changed):
            variable.assign(value)
        return form.filled(values)

    def scan(self, body: Body, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
        return jax.lax.scan(body, carry, xs, length)

    def reversible(self, plan: Plan, chain: Chain, tensors: Tensors) -> Tensors:
        if plan.host.idle(tensors):
            return chain.through(tensors, lambda k, x: self.checkpoint(chain.planned(k, x), [x]))
        return grafted(plan, chain, tensors, _half, _warned)

    def split(self, x: Tensor, sizes: list[int]) -> Tensors:
        return list(jax.lax.split(x, sizes))


def _half(plan: Plan, x: Tensor) -> First:
    """Trace a half-step to a program, which is run now and again; what it closes over is handed to it."""
    noted: list[Any] = []

    def run(x: Tensor) -> Any:
        changes = _changes()
        with changes or contextlib.nullcontext():
            added = plan.host.run(plan.rule.body, [x], {}, plan.where)
        noted[:] = changes.variables if changes else []
        return added, changes.values if changes else []

    program, shapes = jax.make_jaxpr(run, return_shape=True)(x)
    if not isinstance(shapes[0], jax.ShapeDtypeStruct):
        return First(shapes[0], [], lambda *_: (None, None, []))  # it will be refused

    def program_of(x: Tensor, *reads: Tensor) -> Any:
        return jax.core.eval_jaxpr(program.jaxpr, reads, x)

    def again(x: Tensor, reads: Sequence[Tensor], slope: Tensor) -> Any:
        # the second run waits for the cotangent, and is not merged with the first; `arrays.held` would hold
        # on a processor too, but is not linear to a proof
        x, slope = jax.lax.optimization_barrier((x, slope))  # type: ignore[no-untyped-call]
        moving = [i for i, read in enumerate(reads) if plan.host.differentiable(read)]

        def of(x: Tensor, *moved: Tensor) -> Any:
            at = dict(zip(moving, moved))
            return program_of(x, *(at.get(i, read) for i, read in enumerate(reads)))[0]

        added, pull = jax.vjp(of, x, *(reads[i] for i in moving))
        dx, *more = pull(slope)
        found = dict(zip(moving, more))
        return added, dx, [found.get(i) for i in range(len(reads))]

    reads = list(program.consts)
    added, *changed = program_of(x, *map(jax.lax.stop_gradient, reads))
    for variable, value in zip(noted, changed):
        variable.assign(value)
    return First(added, reads, again)


def _warned(chain: Chain, host: Any, holds: Any, number: Any, values: Tensors) -> Tensors:
    """Warn of a drift; a program calls Python for it."""

    def warn(holds: Any, number: Any) -> None:
        if not holds:
            chain.warn(number)

    if any(isinstance(x, jax.core.Tracer) for x in (holds, number)):
        jax.debug.callback(warn, holds, number)
    else:
        warn(holds, number)
    return values


def _changes() -> Any:
    """Give what notes the changes that layers make, if any run on JAX."""
    if not run_on("jax"):
        return None
    from pullback.hosts.jax.model import Changes

    return Changes()


FRAMEWORK = Jax()
