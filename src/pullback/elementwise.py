"""Elementwise functions, from their partial derivatives alone.

For y = f(x₁, …, xₙ) elementwise with broadcasting, and pᵢ = ∂f/∂xᵢ:
    pullback     dxᵢ = Σ over broadcast axes of dy · conj(pᵢ)
    pushforward  ẏ = Σᵢ pᵢ · ẋᵢ
Higher orders follow from the host differentiating the pᵢ, which are written in its own operations.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from pullback import hosts
from pullback.contract import require_return
from pullback.cotangent import require_tensor, shown
from pullback.define import function_of, intent_of
from pullback.errors import (
    CotangentCountError,
    CotangentDtypeError,
    CotangentShapeError,
    DefinitionError,
    GradSignatureError,
    OutputError,
)
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.specs import broadcast_axes, show_shape
from pullback.rule import Rule, at, name_of, shown_signature, signature_of, source_of
from pullback.typed import DefinedFunction, P, T, Y
from pullback.unconverted import unconverted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pullback.typed import Claims

Function = Callable[..., Any]

# by function, which is not kept alive: it may close over arrays
_known: weakref.WeakKeyDictionary[Function, dict[Any, tuple[bool, bool]]] = weakref.WeakKeyDictionary()


@overload
def elementwise(
    function: Callable[P, Y],
    partials: Function | Sequence[Function],
    **claims: Unpack[Claims],
) -> DefinedFunction[P, Y]: ...
@overload
def elementwise(
    *, partials: Function | Sequence[Function], **claims: Unpack[Claims]
) -> Callable[[Callable[P, Y]], DefinedFunction[P, Y]]: ...
@unconverted
def elementwise(
    function: Function | None = None,
    partials: Function | Sequence[Function] | None = None,
    *,
    like: Function | None = None,
    differs: str | None = None,
    chosen: Function | None = None,
) -> Any:
    """Make an elementwise function differentiable by its partial derivatives.

    Args:
        function: Any number of broadcasting arguments to one output.
        partials: One function that returns all partial derivatives (a tuple, or bare when there is one), or
            a list of functions, one per tensor argument. Each is called as `function` is; one that names a
            parameter `output` is given the output too. Those of arguments
            that are numbers are dropped. For a complex argument: the holomorphic derivative.
        like: The function whose derivative this is, when it is not that of `function`.
        differs: Why the gradient is another one on purpose.
        chosen: Called as `function` is: the slopes that stand where the derivative is a choice, and NaN
            elsewhere.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> hypot = pb.elementwise(
        ...     lambda a, b: tf.sqrt(a * a + b * b),
        ...     [lambda a, b, output: a / output, lambda a, b, output: b / output],
        ... )

    Do not use it for a function that mixes elements, such as a softmax.
    """
    if function is None:
        return functools.partial(elementwise, partials=partials, like=like, differs=differs, chosen=chosen)
    name = getattr(function, "__name__", type(function).__name__)
    where = at(name, source_of(function))
    listed = list(partials) if isinstance(partials, (list, tuple)) else [partials]
    if not callable(function) or not all(map(callable, listed)):
        raise DefinitionError.about(
            "elementwise",
            found=f"it was given a {type(function).__name__} and partials of type {type(partials).__name__}",
            expected="a function, and its partial derivatives: one function or a list of functions",
            fix="pb.elementwise(sin, cos)",
        )
    signature = signature_of(function)
    for partial in listed:
        _refuse_cotangent(partial, signature, where)
    rule = Rule(
        body=_body(function, partials, where),
        name=name,
        signature=signature,
        intent=intent_of(where, like, differs, chosen),
        source=source_of(function),
        pushforward=_pushforward(function, partials, where),
    )
    return function_of(rule)


@unconverted
def unbroadcast(dx: T, *, like: Any) -> T:
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
    return hosts.of(dx).unbroadcast(dx, like)  # type: ignore[no-any-return]


def _body(function: Function, partials: Any, where: str) -> Function:
    @unconverted  # what is the user's in it, the host converts
    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        tensors = _tensors(args, kwargs)
        host = hosts.of(tensors[0])
        output = host.run(function, args, kwargs, where)
        if isinstance(output, (tuple, list, dict)):
            raise OutputError.about(
                where,
                found=f"it returned a {type(output).__name__} of {len(output)}",
                expected="one output",
                fix="one elementwise function per output, or pb.custom_gradient",
            )

        def grad(dy: Any) -> list[Any]:
            found = _partials(partials, host, args, kwargs, output, where)
            return [
                None if p is None else host.unbroadcast(dy * host.conjugate(p), x)
                for p, x in zip(found, tensors)
            ]

        return output, grad

    return body


def _pushforward(function: Function, partials: Any, where: str) -> Function:
    listed = partials if isinstance(partials, (list, tuple)) else [partials]
    named = any(_taken(partial, 0, ())[1] for partial in listed)

    def pushforward(*everything: Any, **kwargs: Any) -> Any:
        output = kwargs.pop("output", None) if named else None
        # one tangent per tensor argument, then the arguments
        count = next(n for n in range(1, len(everything)) if n == len(_tensors(everything[n:], kwargs)))
        tangents, args = everything[:count], everything[count:]
        host = hosts.of(tangents[0])
        if output is None:
            output = host.run(function, args, kwargs, where)
        found = _partials(partials, host, args, kwargs, output, where)
        moved = [p * t for p, t in zip(found, tangents) if p is not None]
        return sum(moved, start=host.zeros(host.outline(output)))

    pushforward.takes_output = named  # type: ignore[attr-defined]  # for who pushes long after the run
    return pushforward


def _tensors(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    # a NumPy array stands here only where NumPy itself is the host
    roles = ((x, hosts.role(type(x))) for x in (*args, *kwargs.values()))
    return [x for x, role in roles if role is Role.ARRAY or not isinstance(role, Role)]


def _partials(
    partials: Any, host: Host, args: Sequence[Any], kwargs: dict[str, Any], output: Any, where: str
) -> list[Any]:
    """Evaluate the partial derivatives: one, or None, per tensor argument."""
    tensors = _tensors(args, kwargs)
    listed = partials if isinstance(partials, (list, tuple)) else [partials]
    values: list[Any] = []
    givers: list[Function] = []
    for partial in listed:
        fits, named = _taken(partial, len(args), tuple(kwargs))
        if not fits:
            raise GradSignatureError.about(
                where,
                found=f"{shown(partial)} cannot be called as the function is",
                expected="the arguments of the function, and `output` if it is named",
                fix="give it the signature of the function",
            )
        value = host.run(partial, args, {**kwargs, "output": output} if named else kwargs, where)
        if value is None:
            require_return(partial, where, "the derivative, element by element", "the derivative")
        values += value if isinstance(value, (list, tuple)) else [value]
        givers += [partial] * (len(values) - len(givers))
    if len(tensors) < len(values) <= len(args):  # a number has no slope: those of tensors are left
        moving = [bool(_tensors([x], {})) for x in args]
        values, givers = ([x for x, moves in zip(xs, moving) if moves] for xs in (values, givers))
    if len(values) != len(tensors):
        raise CotangentCountError.about(
            where,
            found=f"{len(values)} partial derivative{'' if len(values) == 1 else 's'}",
            expected=f"{len(tensors)}: one per tensor argument, None for one without",
            fix="return them as a tuple, in the order of the arguments",
        )
    for i, (value, giver) in enumerate(zip(values, givers)):
        if value is not None and not host.fit([value], [output]):
            values[i] = _conformed(value, output, tensors[i], host, where, giver)
    return values


def _conformed(value: Any, output: Any, x: Any, host: Host, where: str, partial: Function) -> Any:
    """Check a partial derivative against the output, and cast it to the output's dtype."""
    want, who = host.spec(output), shown(partial)
    what = "a partial derivative"
    if require_tensor(value, host, where, who, what, f"a tensor that broadcasts to {want}", True):
        return value
    have = host.spec(value)
    if have.kind == "complex" and want.kind == host.spec(x).kind == "floating":
        raise CotangentDtypeError.about(
            where,
            found=f"{who} returned {have.dtype} for {what} of a real function",
            expected="a real derivative",
            why="the imaginary part would be thrown away",
            fix="take its real part",
        )
    if have.shape and want.shape is not None and broadcast_axes(want.shape, have.shape) is None:
        raise CotangentShapeError.about(
            where,
            found=f"{who} returned shape {show_shape(have.shape)} for {what}",
            expected=f"a shape that broadcasts to the output's {show_shape(want.shape)}",
            fix="return the derivative element by element",
        )
    return value if have.kind == "complex" else host.arrays.cast(value, output)


def _refuse_cotangent(partial: Any, signature: inspect.Signature, where: str) -> None:
    """Refuse a partial derivative that asks for `dy`: it would be handed an argument."""
    known = shown_signature(partial)
    takes = list(known.parameters) if known else []
    if "dy" in takes and "dy" not in signature.parameters:
        rest = ", ".join(name for name in takes if name != "dy") or ", ".join(signature.parameters)
        name = name_of(partial)
        raise GradSignatureError.about(
            where,
            found=f"{shown(partial)} takes ({', '.join(takes)})",
            expected="a partial derivative, which takes the arguments of the function and no cotangent",
            why="`dy` would be handed an argument; the product with the cotangent is made for it",
            fix=f"lambda {rest}: …" if name == "<lambda>" else f"def {name}({rest}):",
        )


def _taken(partial: Function, count: int, names: tuple[str, ...]) -> tuple[bool, bool]:
    """Tell whether a function takes these arguments, and whether it names `output`."""
    try:
        known = _known.setdefault(partial, {})
    except TypeError:  # an object that nobody can refer to weakly
        return _read(partial, count, names)
    found = known.get((count, names))
    if found is None:
        found = known[count, names] = _read(partial, count, names)
    return found


def _read(partial: Function, count: int, names: tuple[str, ...]) -> tuple[bool, bool]:
    """Ask the signature."""
    signature = shown_signature(partial)
    if signature is None:
        return True, False
    named = "output" in signature.parameters
    try:
        signature.bind(*[None] * count, **dict.fromkeys([*names, *["output"] * named]))
    except TypeError:
        return False, named
    return True, named
