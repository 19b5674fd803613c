"""Going through a program of JAX, equation by equation.

Whoever runs a jaxpr in another way, or follows what flows through it, says what one equation makes of what it
reads; which variable is what is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jax.extend.core import Literal


def walk(
    jaxpr: Any,
    given: Sequence[Any],
    through: Callable[[Any, list[Any]], Sequence[Any]],
    constant: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
    """Give what comes out of a program whose constants and arguments are `given`.

    `through` gives what an equation makes of what it reads, `constant` what a written number stands for.
    """
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], given))

    def read(atom: Any) -> Any:
        return constant(atom.val) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        known.update(zip(equation.outvars, through(equation, [read(atom) for atom in equation.invars])))
    return [read(atom) for atom in jaxpr.outvars]


def bind(eqn: Any, values: Sequence[Any]) -> list[Any]:
    """Run an equation as it stands."""
    params = eqn.primitive.get_bind_params(eqn.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # a pair before 0.10
    results = eqn.primitive.bind(*functions, *values, **params)
    return list(results) if eqn.primitive.multiple_results else [results]
