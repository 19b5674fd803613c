"""The rule of a function that somebody else wrote: its name, its signature, and the claim made of it."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable
from typing import Any, cast

from pullback.errors import DefinitionError
from pullback.rule import Intent, Rule, at, filled_in, name_of, source_of
from pullback.typed import DefinedFunction, P, RuleFunction, Y

_ANY = inspect.signature(lambda *args, **kwargs: None)


def rule_of(f: Any, intent: Intent) -> Rule:
    """Describe any callable: a function, a compiled one, a layer, a function of a loaded model."""
    return Rule(body=f, name=name_of(f), signature=signature_of(f), intent=intent, source=source_of(f))


def where_of(f: Any) -> str:
    """Name a function and its source line."""
    return at(name_of(f), source_of(filled_in(f)))


def plain_name(f: Any) -> str:
    """Name a callable by a word: what a framework takes for a name. `<lambda>` becomes `lambda_`."""
    word = re.sub(r"\W+", "", name_of(f))
    return f"{word}_" if keyword.iskeyword(word) or not word else word


def signature_of(f: Any) -> inspect.Signature:
    """Give the signature of a callable; any arguments where it has none to show."""
    try:
        return inspect.signature(f)
    except (TypeError, ValueError):  # a builtin, or a restored function
        return _ANY


def require_functions(verb: str, fix: str, **given: Any) -> None:
    """Refuse something that cannot be called."""
    for name, value in given.items():
        if not callable(value):
            raise DefinitionError.about(
                verb,
                found=f"{name}={value!r}"[:80],
                expected=f"`{name}` to be a function, a layer, or anything else that can be called",
                fix=fix,
            )


def made_of(function: RuleFunction[..., Any], f: Callable[P, Y], *more: Any) -> DefinedFunction[P, Y]:
    """Tell what a function calls, so that a model it becomes part of knows the weights in it."""
    vars(function)["parts"] = (f, *more)
    return cast("DefinedFunction[P, Y]", function)


def without_pushforward(function: DefinedFunction[P, Y]) -> RuleFunction[P, Y]:
    """Take the decorator for a pushforward away where forward mode is derived from another function."""
    del function.pushforward
    return function
