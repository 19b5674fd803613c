"""The text that a function was written in, and where in it the function stands.

What is edited must be what ran: a function whose code is not that of the file any more, that has no file, or
that cannot be told from another on its line is refused in one sentence.
"""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import TypeAlias

from pullback.view.definition import GENERATED

Function: TypeAlias = "ast.FunctionDef | ast.Lambda"


class RefusedError(Exception):
    """There is nothing to search; the text says why, in one sentence."""


@dataclass(frozen=True)
class Source:
    """Hold the text of a file with its newlines kept, and its tree."""

    file: str
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, file: str) -> Source:
        """Read a file as Python does."""
        if not file or file.startswith("<") or GENERATED in file or not os.path.isfile(file):
            raise RefusedError("its source is not in a file, so there is no text to edit")
        try:
            text, _ = read(file)
            return cls(file, text, ast.parse(text))
        except (OSError, SyntaxError, ValueError, RecursionError):
            raise RefusedError(f"{os.path.basename(file)} cannot be read as Python any more") from None

    @cached_property
    def starts(self) -> list[int]:
        """Give the place of the first character of every line."""
        return [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", self.text))]

    def place(self, line: int, column: int) -> int:
        """Give the place of a character; a column counts bytes, as Python's does."""
        start = self.starts[line - 1]
        stop = self.starts[line] if line < len(self.starts) else len(self.text)
        whole = self.text[start:stop]
        return start + (column if whole.isascii() else len(whole.encode()[:column].decode(errors="ignore")))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Give where a node stands."""
        first, last = self.place(node.lineno, node.col_offset), node.end_lineno  # type: ignore[attr-defined]
        return first, self.place(last, node.end_col_offset)  # type: ignore[attr-defined]

    @property
    def newline(self) -> str:
        """Give what ends a line."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def indent(self, node: ast.stmt) -> str:
        """Give what stands before a statement; refuse one that does not begin its line."""
        before = self.text[self.starts[node.lineno - 1] : self.span(node)[0]]
        if before.strip():
            raise ValueError("a statement can be put before the first of a line only")
        return before

    def segment(self, node: ast.AST) -> str:
        """Give the text of a node."""
        start, stop = self.span(node)
        return self.text[start:stop]

    def function(self, code: CodeType) -> Function:
        """Find the function that a code object was compiled from."""
        found = [node for node in functions(self.tree) if _begins(node, code)]
        if len(found) > 1:
            found = [node for node in found if _covers(node, code)]
        if len(found) > 1:
            raise RefusedError(f"line {code.co_firstlineno} has more than one function that it could be")
        if not found or not any(_same(code, other) for other in codes(self.compiled)):
            raise RefusedError(
                f"{os.path.basename(self.file)} is not what was imported: it changed since, or was rewritten"
            )
        return found[0]

    @cached_property
    def compiled(self) -> CodeType:
        return compile(self.text, self.file, "exec", dont_inherit=True)


def read(file: str) -> tuple[str, str]:
    """Give the text of a file as Python reads it, with its newlines kept, and its encoding."""
    data = Path(file).read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding), encoding


def functions(tree: ast.AST) -> Iterator[Function]:
    """List the functions of a tree."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield node


def codes(code: CodeType) -> Iterator[CodeType]:
    """List a code object and those inside."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes(part)


def _begins(node: Function, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return node.name == code.co_name and first == code.co_firstlineno


def _covers(node: Function, code: CodeType) -> bool:
    """Tell whether the instructions of a code stand inside a node: lambdas on one line differ in columns."""
    if not hasattr(code, "co_positions") or not isinstance(node, ast.Lambda):
        return True
    body = node.body
    low, high = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    places = [p for p in code.co_positions() if None not in p and p[2] != p[3]]
    inside = [(p[0], p[2]) >= low and (p[1], p[3]) <= high for p in places]
    reach = max(((p[1], p[3]) for p in places), default=high) == high
    return all(inside) and reach and min(((p[0], p[2]) for p in places), default=low) == low


def _same(a: CodeType, b: CodeType) -> bool:
    """Tell whether two codes do the same, in the same lines."""
    names = ("co_name", "co_firstlineno", "co_code", "co_names", "co_varnames", "co_freevars")
    if any(getattr(a, name) != getattr(b, name) for name in names) or len(a.co_consts) != len(b.co_consts):
        return False
    return all(
        _same(x, y) if isinstance(x, CodeType) and isinstance(y, CodeType) else repr(x) == repr(y)
        for x, y in zip(a.co_consts, b.co_consts)
    )
