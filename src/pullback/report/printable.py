"""Text that a terminal, a file and a CI server can hold: what it would obey or refuse is escaped.

A rule's name, a path, a message may hold anything that Python allows: line breaks, the codes that colour,
move and retitle a terminal, halves of a character. They are shown as Python would write them in a string.
"""

from __future__ import annotations

import re
from typing import Any

# Fields of a report that may have several lines; a name or a path has one.
LONG = ("sentence", "edit", "where", "reproducer", "smallest", "code", "docstring")
EXACT = ("patch",)  # whoever shows it escapes it: as data it must apply
BREAK = re.compile("(\r\n|[\n\t])")


def printable(text: str, *, lines: bool = False) -> str:
    """Escape what is not printed; `lines` keeps line breaks. Escaped twice is escaped once."""
    if text.isprintable():
        return text
    if lines:
        return "".join(part if BREAK.fullmatch(part) else printable(part) for part in BREAK.split(text))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, most: int) -> str:
    """Cut a text to so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def cleaned(data: Any, key: str = "") -> Any:
    """Give data with every text in it printable."""
    if isinstance(data, str) and key in EXACT:
        return data.encode("utf-8", "backslashreplace").decode("utf-8")  # half a character is in no file
    if isinstance(data, str):
        return printable(data, lines=key in LONG)
    if isinstance(data, dict):
        return {printable(name): cleaned(value, name) for name, value in data.items()}
    return [cleaned(value, key) for value in data] if isinstance(data, list) else data
