"""`argmin`: the z at which f(z, θ) is least, or else stationary.   F(z, θ) = ∂f/∂z, so ∂F/∂z is symmetric."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from pullback import tree
from pullback.errors import OutputError
from pullback.hosts.base import Host
from pullback.hosts.operation import Function, Tensor
from pullback.hosts.specs import show_shape
from pullback.implicit.condition import Kind
from pullback.implicit.solvers import Means
from pullback.implicit.solving import solving
from pullback.typed import P, RuleFunction, Y

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pullback.implicit.solving import Given


def _zero(host: Host, objective: Function, z: Any, where: str) -> Any:
    leaves, structure = tree.flatten(z)

    def value(*leaves: Tensor) -> list[Tensor]:
        return [objective(tree.unflatten(structure, list(leaves)))]

    (found,) = value(*leaves)
    shape = host.spec(found).shape if host.is_tensor(found) else (0,)
    if shape not in ((), None):
        raise OutputError.about(
            where,
            found="the objective gives "
            + (f"shape {show_shape(shape)}" if host.is_tensor(found) else repr(found)[:80]),
            expected="one number: a tensor of shape ()",
            fix="sum it",
        )
    return tree.unflatten(structure, host.vjp(value, leaves, [host.arrays.zeros_like(found) + 1]))


ARGMIN = Kind("argmin", _zero, symmetric=True, gradient=True)


@overload
def argmin(
    objective: Function, solver: Callable[P, Y], /, **options: Unpack[Given]
) -> RuleFunction[P, Y]: ...
@overload
def argmin(
    objective: Function, /, **options: Unpack[Given]
) -> Callable[[Callable[P, Y]], RuleFunction[P, Y]]: ...
def argmin(
    objective: Function,
    solver: Function | None = None,
    /,
    *,
    tolerance: float | None = None,
    method: str = "auto",
    accuracy: float | None = None,
    iterations: int = 1000,
) -> Any:
    """Give a solver the derivatives of the objective that its solution makes stationary.

    Second order and forward mode: derived, by differentiating the objective again. NumPy has no gradients:
    on its arrays the solution is not confirmed.

    Args:
        objective: f(solution, parameters), one number. Its parameters are found among the solver's arguments
            as those of `root` are.
        solver: Gives the solution. Left out, a decorator is returned.
        tolerance: How large ∂f/∂z may be at the solution, as for `root`.
        method: Of the linear systems with the Hessian: as for `root`, and `"cg"` by default above 32 numbers.
        accuracy, iterations: As for `root`.

    Example:
        >>> import numpy as np, pullback as pb
        >>> def ridge(w, X, y, weight):
        ...     return ((X @ w - y) ** 2).sum() + weight * (w**2).sum()
        >>> @pb.implicit.argmin(ridge)
        ... def fit(X, y, weight):
        ...     return np.linalg.solve(X.T @ X + weight * np.eye(X.shape[1]), X.T @ y)
        >>> fit(np.eye(2), np.ones(2), np.array(1.0)).tolist()
        [0.5, 0.5]

    Do not use it where constraints hold at the solution: state those conditions with `root`.
    """
    return solving(ARGMIN, objective, solver, Means(method, accuracy, iterations), tolerance)
