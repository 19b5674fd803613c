"""A patch as a unified diff that `git apply` takes, and as the text that it makes.

Lines end where git thinks they do, at a line feed alone: CRLF, form feeds and a missing newline at the end
are part of a line. Paths are relative to the working folder. Git patches nothing above that, so the diff of a
file elsewhere is relative to the repository that holds it, or else to its folder; its first line says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pullback.mend.patch import Patch, Span

CONTEXT = 3  # lines around what is changed
LINE = re.compile(r"[^\n]*\n|[^\n]+")
NO_NEWLINE = "\\ No newline at end of file\n"
NAMED = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


class Change(NamedTuple):
    """Say what stands in the place of some lines."""

    start: int  # the first line, from 0
    old: list[str]
    new: list[str]

    @property
    def stop(self) -> int:
        """Give the line after the last."""
        return self.start + len(self.old)


def edited(text: str, spans: Iterable[Span]) -> str:
    """Give a text with its spans replaced."""
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], span.new]
        at = span.stop
    return "".join([*parts, text[at:]])


def unified(patch: Patch, folder: str = "") -> str:
    """Write a patch as a diff, as seen from a folder: the working one, if none is given."""
    lines = LINE.findall(patch.text)
    base, name = _placed(patch.file, folder or os.getcwd())
    head = [f"# to be applied in {base}\n"] if base else []
    head += [f"--- {_quoted(f'a/{name}')}\n", f"+++ {_quoted(f'b/{name}')}\n"]
    shift = 0
    for hunk in _hunks(list(_changes(patch))):
        text, grown = _written(hunk, lines, shift)
        head += text
        shift += grown
    return "".join(head)


def _placed(file: str, folder: str) -> tuple[str, str]:
    """Give the path of a file, and the folder that it starts from if that is not the given one."""
    file, folder = os.path.realpath(file), os.path.realpath(folder)
    above, base = os.path.dirname(file), ""
    if not _below(file, folder):
        base = next((f for f in _upward(above) if os.path.exists(os.path.join(f, ".git"))), above)
    return base, os.path.relpath(file, base or folder).replace(os.sep, "/")


def _below(file: str, folder: str) -> bool:
    try:
        return os.path.commonpath([file, folder]) == folder
    except ValueError:  # another drive
        return False


def _upward(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _quoted(name: str) -> str:
    """Write a name as git reads it: in quotes where it must be, and ended where it has a space."""
    if any(c in NAMED or ord(c) < 32 or ord(c) == 127 for c in name):
        return '"' + "".join(_escaped(c) for c in name) + '"'
    return f"{name}\t" if " " in name else name


def _escaped(c: str) -> str:
    if c in NAMED:
        return f"\\{NAMED[c]}"
    return f"\\{ord(c):03o}" if ord(c) < 32 or ord(c) == 127 else c


def _changes(patch: Patch) -> Iterator[Change]:
    """Give the changed lines; spans that share a line are one change."""
    text = patch.text
    groups: list[list[Span]] = []
    for span in patch.spans:
        start = text.rfind("\n", 0, span.start) + 1
        if groups and start < _end(text, groups[-1][-1].stop):
            groups[-1].append(span)
        else:
            groups.append([span])
    for group in groups:
        start, stop = text.rfind("\n", 0, group[0].start) + 1, _end(text, group[-1].stop)
        inside = [Span(s.start - start, s.stop - start, s.new) for s in group]
        old, new = LINE.findall(text[start:stop]), LINE.findall(edited(text[start:stop], inside))
        same = _common(old, new)
        rest = _common(old[same:][::-1], new[same:][::-1])
        first = text.count("\n", 0, start) + same
        change = Change(first, old[same : len(old) - rest], new[same : len(new) - rest])
        if change.old or change.new:
            yield change


def _end(text: str, at: int) -> int:
    """Give the end of the line that holds a place, its line feed included."""
    return text.find("\n", at) + 1 or len(text)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def _hunks(changes: Sequence[Change]) -> list[list[Change]]:
    """Put changes together whose surroundings meet."""
    hunks: list[list[Change]] = []
    for change in changes:
        if hunks and change.start - hunks[-1][-1].stop <= 2 * CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _written(hunk: Sequence[Change], lines: Sequence[str], shift: int) -> tuple[list[str], int]:
    """Write one hunk, and say by how many lines the text has grown behind it."""
    start, stop = max(hunk[0].start - CONTEXT, 0), min(hunk[-1].stop + CONTEXT, len(lines))
    body, at = [], start
    for change in hunk:
        body += [_line(" ", line) for line in lines[at : change.start]]
        body += [_line("-", line) for line in change.old] + [_line("+", line) for line in change.new]
        at = change.stop
    body += [_line(" ", line) for line in lines[at:stop]]
    grown = sum(len(change.new) - len(change.old) for change in hunk)
    old, new = _range(start, stop - start), _range(start + shift, stop - start + grown)
    return [f"@@ -{old} +{new} @@\n", *body], grown


def _line(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{NO_NEWLINE}"


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"
