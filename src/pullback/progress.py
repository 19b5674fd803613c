"""How far a command is: told on a terminal, and on a terminal only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show how far the checks are, on a terminal only, and only once the target has stopped printing."""
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        bar.stop()
        task = bar.add_task("")

        def told(event: dict[str, Any]) -> None:
            if event["kind"] != "phase":
                return
            if event["phase"] not in ("checking", "mending"):
                bar.stop()  # the target may write to the terminal now
                return
            bar.start()
            bar.update(
                task,
                description=f"{event['phase']} {escape(event['what'])}",
                completed=event["done"],
                total=event["total"],
            )

        yield told


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show that something takes a while, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
