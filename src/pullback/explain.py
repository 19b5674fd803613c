"""`pullback explain`: what a cause or an error means, in the terminal.

The texts are those of the documentation, and there is one copy of them: a wheel carries it inside the
package, a checkout has it in `docs/`. So what an error says to read can be read wherever it is raised.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import inspect
import re
import sys
from pathlib import Path
from typing import Any, TextIO

from pullback import errors
from pullback.report.printable import printable
from pullback.report.terminal import say

PAGES = {"causes": "causes.md", "errors": "errors.md"}


def explain(name: str | None, stream: TextIO | None = None) -> int:
    """Print what a name means, or all names there are, and give the exit code: 2 for one that is unknown."""
    stream = stream or sys.stdout
    if name is None:
        lists = ["\n  ".join([f"{page}:", *found.values()]) for page, found in names().items()]
        say("\n\n".join([*lists, "pullback explain NAME shows one of them"]), stream)
        return 0
    found = sections(name)
    if not found:
        print(f"pullback: {unknown(name)}", file=sys.stderr)
        return 2
    if stream.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console(file=stream).print(Markdown("\n\n".join(found)))
    else:
        say("\n\n".join(found), stream)
    return 0


def names() -> dict[str, dict[str, str]]:
    """List what can be explained, by page and anchor: causes by their word, errors by their class."""
    found: list[Any] = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    classes = {kind.anchor(): kind.__name__ for kind in found if issubclass(kind, errors.PullbackError)}
    return {
        "causes": {key: key for key in sorted(_page("causes"))},
        "errors": {key: classes[key] for key in _page("errors")},
    }


def sections(name: str) -> list[str]:
    """Give the sections of a name: the one of a cause, of an error, or both where they share an anchor."""
    wanted = name.casefold()
    return [
        _page(page)[key]
        for page, found in names().items()
        for key, shown in found.items()
        if wanted in (key, shown.casefold())
    ]


def unknown(name: str) -> str:
    """Say that a name is unknown, and which one may be meant."""
    known: dict[str, str] = {}
    for found in names().values():
        known |= {spelt: shown for key, shown in found.items() for spelt in (key, shown.casefold())}
    close = difflib.get_close_matches(name.casefold(), known, 3)
    meant = " or ".join(dict.fromkeys(known[spelt] for spelt in close))
    said = f"is it {meant}?" if meant else "pullback explain lists all"
    return f"nothing is called '{printable(name)}': {said}"


@functools.cache
def _page(page: str) -> dict[str, str]:
    """Give the sections of a page by their anchors, without what only a browser can follow."""
    parts = re.split(r"^(## .+)$", _source(PAGES[page]), flags=re.MULTILINE)[1:]
    found = {}
    for title, text in zip(parts[::2], parts[1::2]):
        heading, _, anchor = title.removesuffix("}").partition(" {#")
        words = re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text)
        found[anchor or title.removeprefix("## ")] = f"{heading}{words}".rstrip()
    return found


def _source(file: str) -> str:
    inside = importlib.resources.files("pullback") / "pages" / file
    if inside.is_file():
        return inside.read_text(encoding="utf-8")
    return (Path(__file__).parents[2] / "docs" / file).read_text(encoding="utf-8")
