"""Listening to every rule of a program: each framework's once it is imported, and pullback's own."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from pullback import application, define, hosts
from pullback.hosts.keras import is_symbol
from pullback.record.frameworks import FRAMEWORKS
from pullback.record.imports import when_imported
from pullback.record.recorder import Recorder
from pullback.replace import override
from pullback.replace.with_gradient import with_gradient
from pullback.rule import Rule, name_of
from pullback.view.definition import HERE, Own
from pullback.view.native import Listen


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Listen to every rule until the block ends."""

    sites: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()

    def own_made(function: Any) -> None:
        site = _caller()
        if site is not None:
            sites[function] = site
        recorder.made(lambda: Own(function, sites.get(function)))

    def own_called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not any(is_symbol(type(leaf)) for leaf in (*args, *kwargs.values())):
            functions[id(function.rule)] = function
            recorder.called(lambda: Own(function, sites.get(function)), lambda: (args, kwargs))

    functions: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by rule

    def own_pulled(rule: Rule, cotangents: Sequence[Any]) -> None:
        function = functions.get(id(rule))
        if function is not None:
            given = list(cotangents)
            recorder.pulled(lambda: Own(function, sites.get(function)), lambda: given)

    replacements: dict[tuple[int, str], Any] = {}

    def placed(host: Any, chosen: Any, kind: str, names: Any, inputs: Any, gradient: Any) -> None:
        def who() -> Own:
            key = (id(gradient), kind)
            if key not in replacements:
                replacements[key] = replacement(
                    hosts.framework_of(host), chosen, kind, tuple(names), gradient
                )
            return Own(replacements[key])

        recorder.called(who, lambda: (tuple(inputs), {}))

    def order(name: str, listen: Listen) -> None:
        def imported(module: Any) -> None:
            try:
                listening.enter_context(listen(module))
            except Exception as error:  # another version, built otherwise: the import must not fail of it
                recorder.errors.append(error)

        orders.callback(when_imported(name, imported))

    with contextlib.ExitStack() as listening, contextlib.ExitStack() as orders:
        for framework in FRAMEWORKS.values():
            for name, listen in framework.listeners(recorder).items():
                order(name, listen)
        ears: list[tuple[list[Any], Any]] = [
            (define.makers, own_made),
            (define.listeners, own_called),
            (application.listeners, own_pulled),
            (override.listeners, placed),
        ]
        for ear, told in ears:
            ear.append(told)
            orders.callback(ear.remove, told)
        yield recorder


def replacement(framework: str, chosen: Any, kind: str, names: tuple[str, ...], gradient: Any) -> Any:
    """Make the rule of a place: the operation by itself, with the gradient that it was given."""
    given = (k for k, g in chosen.items() if g is gradient and callable(k))
    found = next(given, None) or FRAMEWORKS[framework].operation(kind, names)

    def operation(*tensors: Any) -> Any:
        if found is None:
            raise LookupError(f"the operation {kind!r} has no function of its name")
        return found(*tensors)

    operation.__name__ = operation.__qualname__ = kind
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    vars(operation)["__signature__"] = inspect.Signature(parameters)
    reason = f"overridden by {name_of(gradient)}"
    return with_gradient(operation, gradient, differs=reason)


def _caller() -> tuple[str, int] | None:
    """Find the line of the program that makes a rule; a module of ours that is loaded is no such line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        if frame.f_code.co_name == "<module>":  # whoever imports it does not make its rules
            return None
        frame = frame.f_back
    return os.path.abspath(frame.f_code.co_filename), frame.f_lineno
