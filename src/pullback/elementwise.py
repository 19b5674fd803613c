"""Elementwise functions, from their partial derivatives alone.

For y = f(x₁, …, xₙ) elementwise with broadcasting, and pᵢ = ∂f/∂xᵢ:
    pullback     dxᵢ = Σ over broadcast axes of dy · conj(pᵢ)
    pushforward  ẏ = Σᵢ pᵢ · ẋᵢ
Higher orders follow from the host differentiating the pᵢ, which are written in its own operations.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback import hosts
from pullback.define import function_of, intent_of
from pullback.errors import CotangentCountError, CotangentShapeError, DefinitionError
from pullback.hosts import Role
from pullback.hosts.base import Host, show_shape
from pullback.replace.function import signature_of
from pullback.rule import Rule, at, source_of

Function = Callable[..., Any]


def elementwise(
    function: Function | None = None,
    partials: Function | Sequence[Function] | None = None,
    *,
    like: Function | None = None,
    differs: str | None = None,
) -> Any:
    """Make an elementwise function differentiable by its partial derivatives.

    Args:
        function: Any number of broadcasting arguments to one output.
        partials: One function that returns all partial derivatives (a tuple, or bare when there is one), or
            a list of functions, one per tensor argument. Each is called as `function` is; one that names a
            parameter `output` is given the output too. For a complex argument: the holomorphic derivative.
        like: The function whose derivative this is, when it is not that of `function`.
        differs: Why the gradient is another one on purpose.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> hypot = pb.elementwise(
        ...     lambda a, b: tf.sqrt(a * a + b * b),
        ...     [lambda a, b, output: a / output, lambda a, b, output: b / output],
        ... )

    Do not use it for a function that mixes elements, such as a softmax.
    """
    if function is None:
        return functools.partial(elementwise, partials=partials, like=like, differs=differs)
    name = getattr(function, "__name__", type(function).__name__)
    where = at(name, source_of(function))
    listed = list(partials) if isinstance(partials, (list, tuple)) else [partials]
    if not callable(function) or not all(map(callable, listed)):
        raise DefinitionError.about(
            "elementwise",
            found=f"it was given a {type(function).__name__} and partials of type {type(partials).__name__}",
            expected="a function, and its partial derivatives: one function or a list of functions",
            fix="pb.elementwise(tf.sin, tf.cos)",
        )
    rule = Rule(
        body=_body(function, partials, where),
        name=name,
        signature=signature_of(function),
        intent=intent_of(where, like, differs),
        source=source_of(function),
        pushforward=_pushforward(function, partials, where),
    )
    return function_of(rule)


def unbroadcast(dx: Any, *, like: Any) -> Any:
    """Sum a cotangent over the axes along which `like` was broadcast.

    Args:
        dx: The cotangent, of the broadcast shape.
        like: The input whose shape the result has.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.unbroadcast(tf.ones([4, 3]), like=tf.zeros([3])).numpy().tolist()
        [4.0, 4.0, 4.0]

    Do not use it to hide a wrong shape: what was not broadcast must not be summed.
    """
    return hosts.of(dx).unbroadcast(dx, like)


def _body(function: Function, partials: Any, where: str) -> Function:
    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        tensors = _tensors(args, kwargs)
        host = hosts.of(tensors[0])
        output = host.run(function, args, kwargs, where)

        def grad(dy: Any) -> list[Any]:
            found = _partials(partials, host, args, kwargs, output, where)
            return [None if p is None else _cotangent(host, dy, p, x, where) for p, x in zip(found, tensors)]

        return output, grad

    return body


def _cotangent(host: Host, dy: Any, partial: Any, x: Any, where: str) -> Any:
    product = dy * host.conjugate(partial)
    have, want = host.spec(product).shape, host.spec(dy).shape
    if have is not None and want is not None and len(have) != len(want):
        raise CotangentShapeError.about(
            where,
            found=f"a partial derivative has shape {show_shape(host.spec(partial).shape or ())}",
            expected=f"a shape that broadcasts to the output's {show_shape(want)}",
            fix="return the derivative element by element",
        )
    return host.unbroadcast(product, x)


def _pushforward(function: Function, partials: Any, where: str) -> Function:
    def pushforward(*everything: Any, **kwargs: Any) -> Any:
        # one tangent per tensor argument, then the arguments
        count = next(n for n in range(1, len(everything)) if n == _moving(everything[n:], kwargs))
        tangents, args = everything[:count], everything[count:]
        host = hosts.of(tangents[0])
        output = host.run(function, args, kwargs, where)
        found = _partials(partials, host, args, kwargs, output, where)
        moved = [p * t for p, t in zip(found, tangents) if p is not None]
        return sum(moved, start=host.zeros(host.outline(output)))

    return pushforward


def _tensors(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    # An array is one in a call of NumPy's; beside a tensor it was made a tensor.
    return [x for x in (*args, *kwargs.values()) if _is_tensor(hosts.role(type(x)))]


def _is_tensor(role: Host | Role) -> bool:
    return not isinstance(role, Role) or role is Role.ARRAY


def _moving(args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    return len(_tensors(args, kwargs))


def _partials(
    partials: Any, host: Host, args: Sequence[Any], kwargs: dict[str, Any], output: Any, where: str
) -> list[Any]:
    """Evaluate the partial derivatives: one, or None, per tensor argument."""
    tensors = _tensors(args, kwargs)
    listed = partials if isinstance(partials, (list, tuple)) else [partials]
    values: list[Any] = []
    for partial in listed:
        extra = {"output": output} if _names_output(partial) else {}
        value = host.run(partial, args, {**kwargs, **extra}, where)
        values += value if isinstance(value, (list, tuple)) else [value]
    if len(values) != len(tensors):
        raise CotangentCountError.about(
            where,
            found=f"{len(values)} partial derivative{'' if len(values) == 1 else 's'}",
            expected=f"{len(tensors)}: one per tensor argument, None for one without",
            fix="return them as a tuple, in the order of the arguments",
        )
    return values


@functools.lru_cache(maxsize=1024)
def _names_output(partial: Function) -> bool:
    try:
        return "output" in inspect.signature(partial).parameters
    except (TypeError, ValueError):  # a builtin
        return False
