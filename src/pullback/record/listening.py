"""Listening to every rule of a program: each framework's once it is imported, and pullback's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from pullback import define
from pullback.hosts.keras import is_symbol
from pullback.record.frameworks import FRAMEWORKS
from pullback.record.imports import when_imported
from pullback.record.place import Source, place_of
from pullback.record.recorder import Recorder
from pullback.record.sample import Recorded


def own_rule(function: Any) -> Recorded:
    """Make the record of one of pullback's own rules; its framework is that of its data."""
    path, line = place_of(function.rule.function)
    return Recorded(function, function.rule.name, "pullback", str(function.__module__), path, line)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Listen to every rule until the block ends."""
    restore: list[Callable[[], None]] = []

    def own_made(function: Any) -> None:
        recorder.made(lambda: Source.of(function), lambda: own_rule(function))

    def own_called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not any(is_symbol(type(leaf)) for leaf in (*args, *kwargs.values())):
            recorder.called(lambda: Source.of(function), lambda: (args, kwargs), lambda: own_rule(function))

    def order(name: str, listen: Callable[[Any], Callable[[], None]]) -> Callable[[], None]:
        def imported(module: Any) -> None:
            try:
                restore.append(listen(module))
            except Exception as error:  # another version, built otherwise: the import must not fail of it
                recorder.errors.append(error)

        return when_imported(name, imported)

    wanted = [
        order(name, listen)
        for framework in FRAMEWORKS.values()
        for name, listen in framework.listeners(recorder).items()
    ]
    define.makers.append(own_made)
    define.listeners.append(own_called)
    try:
        yield recorder
    finally:
        for withdraw in wanted:
            withdraw()
        define.makers.remove(own_made)
        define.listeners.remove(own_called)
        for undo in reversed(restore):
            undo()
