"""A declaration in a comment: `# pullback: differs="straight-through"`, on the line of a definition.

It stands on a line of the decorators, of the `def` or `class`, or alone on the line above. It is read when
the rule is checked: a program that is not checked never pays for it.
"""

from __future__ import annotations

import ast
import functools
import io
import linecache
import os
import re
import tokenize
from collections.abc import Iterator

from pullback.declare import NOTHING, Declaration, read
from pullback.errors import ConfigurationError

MARK = re.compile(r"#\s*pullback:\s*(.*)")


def commented(path: str, line: int) -> Declaration:
    """Read what the comments at a definition say; the line is its first, as Python counts it."""
    if not path or line < 1:
        return NOTHING
    return _read(path, line, "".join(linecache.getlines(path)[max(line - 2, 0) : line + 60]))


@functools.lru_cache(maxsize=4096)
def _read(path: str, line: int, text: str) -> Declaration:
    if "pullback:" not in text:
        return NOTHING
    found = NOTHING
    for offset, comment in _comments(text, above=line > 1):
        match = MARK.match(comment)
        if match is None:
            continue
        at = f"{os.path.basename(path)}:{line + offset}"
        found = _said(match[1].strip(), at).over(found)
    return found


def _comments(text: str, *, above: bool) -> Iterator[tuple[int, str]]:
    """List the comments of a definition's head, with their lines, counted from its first."""
    lines = text.splitlines(keepends=True)
    if above:
        before = lines.pop(0).strip()
        if before.startswith("#"):  # behind code it belongs to that
            yield -1, before
    inside, decorated = False, False  # a line of code has begun; it is a decorator
    try:
        for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0] - 1, token.string
            elif token.type == tokenize.NEWLINE:
                if not decorated:
                    return
                inside = False
            elif not inside and token.type in (tokenize.NAME, tokenize.OP):
                inside, decorated = True, token.string == "@"
    except (tokenize.TokenError, SyntaxError):  # the piece ends within a bracket or a string
        return


def _said(text: str, at: str) -> Declaration:
    where = f"the comment in {at}"
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not call.keywords:
            raise ValueError
        table = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
    except (SyntaxError, ValueError):
        raise ConfigurationError.about(
            where,
            found=f"# pullback: {text}",
            expected="key=value, with plain values",
            fix='# pullback: differs="straight-through"',
        ) from None
    return read(table, where=where, origin=where, error=ConfigurationError)
