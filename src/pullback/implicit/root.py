"""`root`: a solution of F(z, θ) = 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from pullback.hosts.base import Host
from pullback.hosts.operation import Function
from pullback.implicit.condition import Kind
from pullback.implicit.solvers import Means
from pullback.implicit.solving import solving
from pullback.typed import P, RuleFunction, Y

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pullback.implicit.solving import Given


def _zero(host: Host, function: Function, z: Any, where: str) -> Any:
    return function(z)


ROOT = Kind("root", _zero)


@overload
def root(condition: Function, solver: Callable[P, Y], /, **options: Unpack[Given]) -> RuleFunction[P, Y]: ...
@overload
def root(
    condition: Function, /, **options: Unpack[Given]
) -> Callable[[Callable[P, Y]], RuleFunction[P, Y]]: ...
def root(
    condition: Function,
    solver: Function | None = None,
    /,
    *,
    tolerance: float | None = None,
    method: str = "auto",
    accuracy: float | None = None,
    iterations: int = 1000,
) -> Any:
    """Give a solver the derivatives of the equation that it solves.

    The solver runs as it is, and is never differentiated: it may loop, branch, or call NumPy. Second order
    and forward mode: derived, by differentiating the condition again.

    Args:
        condition: F(solution, parameters), zero at a solution: as many numbers as the solution has. Its
            parameters are arguments of the solver: those of the same names, or by position all of them or
            all but the first. Nothing else has a gradient: an initial guess moves no solution.
        solver: Gives the solution: a tensor or a structure of them. Left out, a decorator is returned.
        tolerance: How large the condition may be at the solution, relative to the largest number in the
            solution and the arguments; by default the cube root of the dtype's roundoff. `inf` asks nothing.
        method: Of the linear systems of the derivatives: `"dense"`, `"cg"` for a symmetric definite ∂F/∂z,
            `"gmres"`, `"bicgstab"`; by default dense for up to 32 numbers, then `"gmres"`.
        accuracy: The residual of these systems, relative to their right-hand sides; by default as small as
            the dtype allows.
        iterations: The most products with ∂F/∂z for one of them.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> @pb.implicit.root(lambda z, x: z * z - x)
        ... def square_root(x):
        ...     z = tf.ones_like(x)
        ...     for _ in range(20):
        ...         z = (z + x / z) / 2
        ...     return z
        >>> x = tf.constant([4.0, 1.0])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = square_root(x)
        >>> tape.gradient(y, x).numpy().round(4).tolist()
        [0.25, 0.5]

    Do not use it where ∂F/∂z may be singular: such a solution has no derivative, and that is an error.
    """
    return solving(ROOT, condition, solver, Means(method, accuracy, iterations), tolerance)
