"""A rule in the place of an operation: the gradient that it gives there.

The operation keeps its values, and gets the rule's pullback at its inputs. So the rule must be a function of
the same tensors, with the options of the operation: an axis that nobody knows of would be a wrong
gradient without a word. A host that tells of options gives them in the framework's words; one that does
not, gives None, and then a rule that has options is refused.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from pullback import hosts
from pullback.errors import OverrideError
from pullback.hosts.operation import Function
from pullback.rule import Rule, name_of

_WORDS = {"dim": "axis", "keepdim": "keepdims"}  # what frameworks call it, and the array API
_SILENT = ("_stacklevel", "inplace", "name", "out")  # they change no value


def is_rule(gradient: Any) -> bool:
    """Tell whether a gradient is given by a rule."""
    return isinstance(getattr(gradient, "rule", None), Rule)


def gradient_of(rule: Any, kind: str, count: int, options: Mapping[str, Any] | None) -> Function:
    """Give the gradient of a rule at the place of an operation of so many tensors."""
    parameters = rule.rule.signature.parameters.values()
    tensors = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.default is inspect.Parameter.empty]
    if len(tensors) != count:
        raise not_standing(kind, rule, f"an operation of {count} tensors", f"the rule takes {len(tensors)}")
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if options is None and known:
        raise not_standing(kind, rule, "whose options are not known", f"the rule has {', '.join(known)}")
    given = _translated(options or {}, known)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise not_standing(
            kind, rule, f"an operation with {', '.join(unknown)}", "the rule has no such option"
        )
    run = functools.partial(rule, **given)

    def gradient(*everything: Any) -> Any:
        inputs = everything[-count:]
        host = hosts.of(inputs[0])
        dys = [
            dy for dy in everything[:-count] if host.differentiable(dy)
        ]  # not those of an order of indices

        def outputs(*xs: Any) -> list[Any]:
            ys = run(*xs)
            ys = [*ys] if isinstance(ys, tuple) else [ys]
            have, want = [[host.spec(one).shape for one in side] for side in (ys, dys)]
            if have != want:
                raise not_standing(kind, rule, f"which gives shapes {want}", f"the rule gives {have}")
            return ys

        found = host.vjp(outputs, inputs, dys)
        return tuple(found) if len(found) > 1 else found[0]

    gradient.__name__ = name_of(rule)
    return gradient


def _translated(options: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """Give options in the words of the array API; those given by position are named by the rule, in order."""
    found: dict[str, Any] = {}
    unnamed = [value for name, value in options.items() if name.isdigit()]
    for i, value in enumerate(unnamed):
        found[known[i] if i < len(known) else f"option {i + 1} by position"] = value
    for name, value in options.items():
        if not name.isdigit() and name not in _SILENT and value is not None:
            found[_WORDS.get(name, name)] = tuple(value) if isinstance(value, list) else value
    return found


def not_standing(kind: str, rule: Any, found: str, why: str) -> OverrideError:
    """Say that a rule cannot stand for an operation."""
    return OverrideError.about(
        "override",
        found=f"the rule {name_of(rule)} for {kind}, {found}",
        expected="a rule of the same tensors and options",
        why=why,
        fix=f"def gradient(dy, x):\n    return …   # for {kind}",
    )
