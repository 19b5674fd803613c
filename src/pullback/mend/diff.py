"""A patch as a unified diff that `git apply` takes, and as the text that it makes.

Lines end where git thinks they do, at a line feed alone: CRLF, form feeds and a missing newline at the end
are part of a line. Paths are relative to the working folder. Git patches nothing above that, so the diff of a
file elsewhere is relative to the repository that holds it, or else to its folder; its first line says so.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pullback.mend.patch import Patch, Span

LINE = re.compile(r"[^\n]*\n|[^\n]+")
NO_NEWLINE = "\\ No newline at end of file\n"
NAMED = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


def edited(text: str, spans: Iterable[Span]) -> str:
    """Give a text with its spans replaced."""
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], span.new]
        at = span.stop
    return "".join([*parts, text[at:]])


def unified(patch: Patch, folder: str = "") -> str:
    """Write a patch as a diff, as seen from a folder: the working one, if none is given."""
    base, name = _placed(patch.file, folder or os.getcwd())
    old, new = LINE.findall(patch.text), LINE.findall(edited(patch.text, patch.spans))
    lines = difflib.unified_diff(old, new, _quoted(f"a/{name}"), _quoted(f"b/{name}"))
    ended = (line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in lines)
    return "".join([f"# to be applied in {base}\n"] * bool(base) + [*ended])


def _placed(file: str, folder: str) -> tuple[str, str]:
    """Give the path of a file, and the folder that it starts from if that is not the given one."""
    file, folder, base = os.path.realpath(file), os.path.realpath(folder), ""
    above = Path(file).parents
    if Path(folder) not in above:
        base = str(next((f for f in above if (f / ".git").exists()), above[0]))
    return base, os.path.relpath(file, base or folder).replace(os.sep, "/")


def _quoted(name: str) -> str:
    """Write a name as git reads it: in quotes where it must be, and ended where it has a space."""
    if any(c in NAMED or ord(c) < 32 or ord(c) == 127 for c in name):
        return '"' + "".join(_escaped(c) for c in name) + '"'
    return f"{name}\t" if " " in name else name


def _escaped(c: str) -> str:
    if c in NAMED:
        return f"\\{NAMED[c]}"
    return f"\\{ord(c):03o}" if ord(c) < 32 or ord(c) == 127 else c
