"""Functions that run again in JAX: `jax.checkpoint`, which is right as it is, in any structure.

JAX draws from keys, so a second run draws the same numbers. What layers of Keras would change is returned,
and left where it belongs afterwards: a traced value must not stay in a layer.
"""

from __future__ import annotations

import contextlib
from typing import Any

import jax

from pullback import outputs
from pullback.hosts.keras import run_on
from pullback.hosts.operation import Tensor
from pullback.plan import Plan
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
        found: tuple[Tensors, Tensors] = jax.lax.scan(body, carry, xs, length)
        return found

    def split(self, x: Tensor, sizes: list[int]) -> Tensors:
        return list(jax.lax.split(x, sizes))


def _changes() -> Any:
    """Give what notes the changes that layers make, if any run on JAX."""
    if not run_on("jax"):
        return None
    from pullback.hosts.jax.model import Changes

    return Changes()


FRAMEWORK = Jax()
