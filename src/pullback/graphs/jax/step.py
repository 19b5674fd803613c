"""One equation of a jaxpr, run and differentiated by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pullback.graphs.framework import sentence
from pullback.hosts.jax.programs import bind

OWN = "pullback_call"


class Step:
    """One equation, run with its pullback."""

    def __init__(self, eqn: Any, values: Sequence[Any], live: Sequence[bool]) -> None:
        self.eqn, self.values = eqn, list(values)
        self.node = -1
        self.edges: dict[int, int] = {}
        self.sources: dict[int, tuple[int, int]] = {}
        self.moving = [i for i, v in enumerate(eqn.invars) if live[i] and is_float(v.aval.dtype)]
        self.outputs: list[Any] = []
        self.answers = all(v.aval.dtype == bool for v in eqn.outvars)  # a comparison: nothing comes back
        self.pullback: Any = None
        self.problem = ""
        self.kept: int | None = None

    def _floats(self, *moving: Any) -> tuple[list[Any], list[Any]]:
        values = list(self.values)
        for i, value in zip(self.moving, moving):
            values[i] = value
        found = bind(self.eqn, values)
        floats = [y for y, v in zip(found, self.eqn.outvars) if is_float(v.aval.dtype)]
        return floats, found

    def run(self) -> None:
        """Run the equation, with its pullback where it has one."""
        floats = [v for v in self.eqn.outvars if is_float(v.aval.dtype)]
        if self.moving and floats and self.eqn.primitive.name != "stop_gradient":
            try:
                _, self.pullback, self.outputs = jax.vjp(
                    self._floats, *(self.values[i] for i in self.moving), has_aux=True
                )
            except Exception as error:  # an operation without a derivative says so in its own way
                self.problem = sentence(error)
            else:
                self.kept = self._held()
                return
        self.outputs = bind(self.eqn, self.values)
        self.kept = 0

    def _held(self) -> int | None:
        """Count the bytes that the pullback holds: its leaves, each once."""
        held = self.pullback
        if self.eqn.primitive.name == OWN:  # run by itself, a rule keeps them where JAX does not look
            moving = [self.values[i] for i in self.moving]
            with contextlib.suppress(Exception):
                held = jax.eval_shape(lambda *given: jax.vjp(self._floats, *given, has_aux=True)[1], *moving)
        leaves = {id(x): x for x in jax.tree_util.tree_leaves(held) if hasattr(x, "dtype")}
        return sum(int(x.size) * int(x.dtype.itemsize) for x in leaves.values())

    def pull(self, cotangents: Sequence[Any]) -> dict[int, Any]:
        """Give the shares of the operands."""
        pairs = [
            (c, y) for c, y, v in zip(cotangents, self.outputs, self.eqn.outvars) if is_float(v.aval.dtype)
        ]
        if self.pullback is None or all(c is None for c, _ in pairs):
            return {}
        filled = [jnp.zeros_like(y) if c is None else c for c, y in pairs]
        try:
            return dict(zip(self.moving, self.pullback(filled)))
        except Exception as error:  # a loop that only runs forward says so here
            self.problem = sentence(error)
            return {}


def is_float(dtype: Any) -> bool:
    return bool(jax.dtypes.issubdtype(dtype, np.inexact))
