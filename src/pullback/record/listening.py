"""Listening to every rule of a program: each framework's once it is imported, and pullback's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pullback import define
from pullback.hosts.keras import is_symbol
from pullback.record.frameworks import FRAMEWORKS
from pullback.record.imports import when_imported
from pullback.record.recorder import Recorder
from pullback.view.definition import Own
from pullback.view.native import Listen


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Listen to every rule until the block ends."""

    def own_made(function: Any) -> None:
        recorder.made(lambda: Own(function))

    def own_called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not any(is_symbol(type(leaf)) for leaf in (*args, *kwargs.values())):
            recorder.called(lambda: Own(function), lambda: (args, kwargs))

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
        define.makers.append(own_made)
        orders.callback(define.makers.remove, own_made)
        define.listeners.append(own_called)
        orders.callback(define.listeners.remove, own_called)
        yield recorder
