"""Writing an operation and its gradient together: `@custom_gradient`.

What comes out is a plain function that carries its rule. All it does on a call is to bind the arguments and
hand the operation to the host of its data.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from pullback.application import Application
from pullback.errors import DefinitionError
from pullback.hosts import dynamo
from pullback.hosts.dynamo import Opaque, called_whole, is_tracing
from pullback.hosts.operation import Tensor
from pullback.outputs import LONE
from pullback.plan import Plan, plan
from pullback.rule import EXACT, Intent, Rule, at, source_of
from pullback.typed import DefinedFunction, Definition, F, P, Y, defined
from pullback.unconverted import unconverted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pullback.typed import Claims, Longer

Function = Callable[..., Any]

# The recorder's way in: each is told of every rule made, or of every call. Empty in any other program.
makers: list[Callable[[Function], None]] = []
listeners: list[Callable[[Function, tuple[Any, ...], dict[str, Any]], None]] = []


@overload
def custom_gradient(body: Callable[P, tuple[Y, Function]], /) -> DefinedFunction[P, Y]: ...
@overload
def custom_gradient(body: Callable[P, Longer], /) -> DefinedFunction[P, Any]: ...
@overload
def custom_gradient(*, order: int | None = None, **claims: Unpack[Claims]) -> Definition: ...
@unconverted
def custom_gradient(
    body: Function | None = None,
    /,
    *,
    order: int | None = None,
    like: Function | None = None,
    differs: str | None = None,
    chosen: Function | None = None,
) -> Any:
    """Give a function its own gradient.

    The function returns its outputs and then `grad`, which takes one cotangent per output and returns one
    per argument. See `docs/contract.md` for every form that is understood.

    Args:
        body: The function.
        order: 1 refuses a second derivative, with an error instead of a wrong number.
        like: The function whose derivative this gradient is, when it is not that of the body.
        differs: Why the gradient is another one on purpose.
        chosen: Which slope stands where the derivative is a choice, as `docs/ops.md` has it.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> @pb.custom_gradient
        ... def log1pexp(x):
        ...     e = tf.exp(x)
        ...     def grad(dy):
        ...         return dy * (1 - 1 / (1 + e))
        ...     return tf.math.log(1 + e), grad

    Do not use it where automatic differentiation is already right, stable and fast.
    """
    if body is None:
        return functools.partial(_define, order=order, like=like, differs=differs, chosen=chosen)
    return _define(body, order=order, like=like, differs=differs, chosen=chosen)


def _define(
    body: Function,
    *,
    order: int | None,
    like: Function | None,
    differs: str | None,
    chosen: Function | None,
) -> Any:
    name = getattr(body, "__name__", type(body).__name__)
    where = at(name, source_of(body))
    if not callable(body):
        raise DefinitionError.about(
            "custom_gradient",
            found=f"it was given a {type(body).__name__}",
            expected="a function that returns its outputs and `grad`",
            fix="@pb.custom_gradient\ndef f(x):\n    …\n    return y, grad",
        )
    if order not in (None, 1):
        raise DefinitionError.about(
            where,
            found=f"order={order!r}",
            expected="order=1, or no order at all",
            why="higher orders are derived, or given by `gradgrad`; only the first can be made the last",
            fix="remove `order`",
        )
    return function_of(
        Rule(
            body=body,
            name=name,
            signature=inspect.signature(body),
            intent=intent_of(where, like, differs, chosen),
            order=order,
            source=source_of(body),
        )
    )


def intent_of(
    where: str, like: Function | None, differs: str | None, chosen: Function | None = None
) -> Intent:
    """Read the claim that a rule makes from the decorator's arguments."""
    if chosen is not None and (not callable(chosen) or differs is not None):
        raise DefinitionError.about(
            where,
            found="both chosen= and differs=" if callable(chosen) else f"chosen={chosen!r}",
            expected="a function that gives the slope where the derivative is a choice, and NaN elsewhere",
            why="a gradient that differs everywhere makes no choice at a point",
            fix="leave chosen= out",
        )
    if like is not None and differs is not None:
        raise DefinitionError.about(
            where,
            found="both like= and differs=",
            expected="one of them: a gradient is that of another function, or none at all",
            fix="keep like=, if there is such a function",
        )
    if like is not None:
        if not callable(like):
            raise DefinitionError.about(where, found=f"like={like!r}", expected="a function", fix="like=g")
        return Intent("like", function=like, chosen=chosen)
    if differs is not None:
        if not isinstance(differs, str) or not differs.strip():
            raise DefinitionError.about(
                where,
                found=f"differs={differs!r}",
                expected="the reason, in words",
                fix='differs="straight-through"',
            )
        return Intent("differs", reason=differs)
    return EXACT if chosen is None else Intent(chosen=chosen)


def function_of(
    rule: Rule, apply: Callable[[Plan, list[Tensor]], Any] | None = None
) -> DefinedFunction[..., Any]:
    """Make the function that users call. It is a plain function, so methods, Keras and pickle know it.

    A plan is carried out by its host, or by `apply`: a replacement, whose body is a function without a
    `grad`, brings its own.
    """
    # A function's attributes are taken over; those of a layer, or of another object that is called, are not.
    updated = ("__dict__",) if inspect.isfunction(rule.body) else ()
    opaque = Opaque()

    @defined
    @functools.wraps(rule.body, updated=updated)
    def function(*args: Any, **kwargs: Any) -> Any:
        # `PROGRAM` is read from its module: pickled by value, a function would take a copy of the list along.
        if is_tracing(dynamo.PROGRAM):
            return called_whole(opaque, args, kwargs)
        for listen in listeners:
            listen(function, args, kwargs)
        rule = function.rule
        # The key of a call of tensors alone needs no plan; that of any other is its plan (`Plan.way`).
        shortcut = rule.shortcuts.get((len(args), type(args[0]))) if args and not kwargs else None
        if shortcut is not None:
            result = shortcut(args)
            if result is not None:
                return result
        made, tensors = plan(rule, args, kwargs)
        if rule.own is not None:
            result = rule.own(made, tensors)
            if result is not None:
                return result
        shortcut = rule.shortcuts.get(made)
        if shortcut is not None:
            result = shortcut(tensors)
            if result is not None:
                return result
        if made.symbolic:
            from pullback.keras.layer import into_model

            return into_model(function, made, tensors)
        if apply is not None:
            return apply(made, tensors)
        return applied(made, tensors)

    def pushforward(push: F) -> F:
        """Say what forward mode gives: tangents of the tensor arguments, then the arguments ↦ tangents."""
        known: Rule = function.rule
        function.rule = dataclasses.replace(known, pushforward=push)
        return push

    # `__wrapped__` would lead whoever looks for the true function, as tf.function does, past the rule.
    del vars(function)["__wrapped__"]
    function.__signature__ = rule.signature
    function.rule = rule
    function.pushforward = pushforward
    # AutoGraph must not convert this wrapper: the host converts the body itself, when a graph is built.
    unconverted(function)
    opaque.function = function
    for made in makers:
        made(function)
    return function


def applied(made: Plan, tensors: list[Tensor]) -> Any:
    """Carry out a plan by its host."""
    application = Application(made)
    values = made.host.apply(application, tensors)
    return values[0] if application.outputs is LONE else application.outputs.filled(values)
