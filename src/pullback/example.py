"""Example arguments, kept on the function they belong to: what `pullback check mylib:f` checks it at.

The mark must survive whatever decorator stands above or below it, so it is read along rules and
`__wrapped__`. A domain given with one belongs to the function, wherever it is checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pullback.domain import EXPECTED, Domain, DomainError
from pullback.errors import DefinitionError, OptionError
from pullback.rule import Rule

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__pullback_examples__"


def example(*args: Any, domain: Any = None, **kwargs: Any) -> Callable[[F], F]:
    """Give a function example arguments, for the checker.

    A lone callable that needs no arguments makes them: it returns one argument, or a tuple of several. The
    mark may stand above or below `custom_gradient`, and more than once.

    Args:
        args: The positional arguments of one call, or one function that makes them.
        domain: Where the function means something, for every check of it: `(low, high)`,
            `{"x": (low, high)}`, or a function of the inputs that tells whether they are inside.
        kwargs: The keyword arguments of that call.

    Example:
        >>> import numpy as np, pullback as pb
        >>> @pb.example(np.ones(3), power=2)
        ... def f(x, power):
        ...     return x**power

    Do not use it to make a harmless input the only one: the checker also tries points of its own.
    """
    if not args and not kwargs:
        raise DefinitionError.about(
            "example",
            found="no arguments",
            expected="the arguments of one call",
            fix="@pb.example(np.ones(3))",
        )

    try:
        kept = None if domain is None else Domain.of(domain)
    except DomainError as problem:
        raise OptionError.about(
            "example", found=str(problem), expected=EXPECTED, fix="domain=(0.0, 1.0)"
        ) from None

    def mark(function: F) -> F:
        known = getattr(function, MARK, ())
        try:
            setattr(function, MARK, ((args, kwargs, kept), *known))
        except AttributeError:
            raise DefinitionError.about(
                getattr(function, "__name__", repr(function)),
                found=f"a {type(function).__name__}, which can carry no mark",
                expected="a Python function",
                fix="mark a function that calls it",
            ) from None
        return function

    return mark


def examples_of(function: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """List the examples of a function, made where a maker was given."""
    return [_made(args, kwargs) for args, kwargs, _ in _marks(function)]


def domain_of(function: Any) -> Domain | None:
    """Give the domain that an example of a function states."""
    return next((domain for _, _, domain in _marks(function) if domain is not None), None)


def _marks(function: Any) -> tuple[tuple[tuple[Any, ...], dict[str, Any], Domain | None], ...]:
    while not hasattr(function, MARK):
        rule = getattr(function, "rule", None)
        inner = rule.body if isinstance(rule, Rule) else getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return getattr(function, MARK, ())


def _made(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if kwargs or len(args) != 1 or not inspect.isroutine(args[0]):
        return args, kwargs
    made = args[0]()
    return (made if isinstance(made, tuple) else (made,)), {}
