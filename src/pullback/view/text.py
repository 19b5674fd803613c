"""The text of a rule as its author wrote it: the function, its gradient, and its docstring.

Only what a user wrote is read: a part that belongs to a framework or to this library has no text here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from pullback.view.definition import inner, module_of, package_of

LONGEST = 12_000  # letters


def text_of(parts: Iterable[Any]) -> tuple[str, str]:
    """Give the source of the parts of a rule, each once, and the first docstring among them."""
    found: dict[str, dict[range, str]] = {}  # by file and lines
    docstring = ""
    for part in parts:
        written = part if inspect.isclass(part) else inner(part)
        if not (inspect.isclass(written) or hasattr(written, "__code__")) or package_of([module_of(written)]):
            continue
        docstring = docstring or inspect.cleandoc(vars(written).get("__doc__") or written.__doc__ or "")
        try:
            lines, first = inspect.getsourcelines(written)
            file = inspect.getsourcefile(written) or ""
        except (OSError, TypeError, IndexError, SyntaxError):  # typed in, generated, or changed since
            continue
        at = range(first, first + len(lines))
        if not any(at.start in other for other in found.get(file, ())):  # not a part of what is there
            found.setdefault(file, {})[at] = inspect.cleandoc("\n" + "".join(lines))
    text = "\n\n\n".join(
        texts[at] for texts in found.values() for at in sorted(texts, key=lambda at: at.start)
    )
    return (text if len(text) <= LONGEST else f"{text[:LONGEST]}\n…"), docstring[:LONGEST]
