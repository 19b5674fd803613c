"""`fixed_point`: a solution of z = T(z, θ).   F(z, θ) = T(z, θ) − z"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from pullback import tree
from pullback.hosts.base import Host
from pullback.hosts.operation import Function
from pullback.implicit.condition import Kind
from pullback.implicit.solvers import Means
from pullback.implicit.solving import solving
from pullback.typed import P, RuleFunction, Y

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pullback.implicit.solving import Given


def _zero(host: Host, step: Function, z: Any, where: str) -> Any:
    moved, _ = tree.flatten(step(z))
    leaves, _ = tree.flatten(z)
    if len(moved) != len(leaves):
        return moved  # said by who compares it with the solution
    return [y - x for y, x in zip(moved, leaves)]


FIXED_POINT = Kind("fixed_point", _zero)


@overload
def fixed_point(
    step: Function, solver: Callable[P, Y], /, **options: Unpack[Given]
) -> RuleFunction[P, Y]: ...
@overload
def fixed_point(
    step: Function, /, **options: Unpack[Given]
) -> Callable[[Callable[P, Y]], RuleFunction[P, Y]]: ...
def fixed_point(
    step: Function,
    solver: Function | None = None,
    /,
    *,
    tolerance: float | None = None,
    method: str = "auto",
    accuracy: float | None = None,
    iterations: int = 1000,
) -> Any:
    """Give a solver the derivatives of the step that leaves its solution as it is.

    A deep equilibrium layer is one. Second order and forward mode: derived, by differentiating the step.

    Args:
        step: T(solution, parameters), which gives the solution again. Its parameters are found among the
            solver's arguments as those of `root` are.
        solver: Gives the solution. Left out, a decorator is returned.
        tolerance, method, accuracy, iterations: As for `root`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> @pb.implicit.fixed_point(lambda z, a: np.cos(a * z))
        ... def settled(a):
        ...     z = np.zeros_like(a)
        ...     for _ in range(100):
        ...         z = np.cos(a * z)
        ...     return z
        >>> settled(np.ones(1)).round(4).tolist()
        [0.7391]

    Do not use it for a step that is taken a few times: differentiate those steps.
    """
    return solving(FIXED_POINT, step, solver, Means(method, accuracy, iterations), tolerance)
