"""What the user named: a script, a function, a folder or a module; judged before anything is started.

Only what can be told without running the target is told here. The sentence of a refusal is all that is
printed.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SUFFIXES = ("", ".py", ".pyw")


class TargetError(Exception):
    """A target that cannot be run; the text is one sentence for the user."""


@dataclass(frozen=True)
class Target:
    """Hold one target: `module` is a dotted name or a file; `function` is empty unless one is meant."""

    text: str
    kind: Literal["script", "function", "folder", "module"]
    module: str
    function: str = ""


def parse(text: str) -> Target:
    """Read one target of the command line."""
    if os.path.isdir(text):
        return Target(text, "folder", os.path.abspath(text))
    if os.path.exists(text):
        compiles(text)
        return Target(text, "script", os.path.abspath(text))
    module, colon, function = text.replace("::", ":").rpartition(":")  # as pytest writes it, too
    if colon and function and all(part.isidentifier() for part in function.split(".")):
        if os.path.isfile(module):
            compiles(module)
            return Target(text, "function", os.path.abspath(module), function)
        if _dotted(module):
            return Target(text, "function", module, function)
        raise TargetError(f"{module} does not exist")
    if not _dotted(text):
        raise TargetError(f"{text} does not exist")
    return Target(text, "module", text)


def _dotted(text: str) -> bool:
    return not text.endswith(SUFFIXES[1:]) and all(part.isidentifier() for part in text.split("."))


def compiles(path: str) -> None:
    """Refuse a file that is no Python, without running it."""
    name = os.path.basename(path)
    if os.path.splitext(path)[1].lower() not in SUFFIXES:
        raise TargetError(f"{path} is not a Python file")
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from None
    try:
        if b"\0" in source:
            raise UnicodeDecodeError("utf-8", source, 0, 1, "null byte")
        text = importlib.util.decode_source(source)
    except (UnicodeDecodeError, LookupError, SyntaxError):
        raise TargetError(f"{path} is not Python: it is not text") from None
    try:
        compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise TargetError(f"{path} has a syntax error ({name}:{error.lineno}: {error.msg})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TargetError(f"{path} cannot be compiled: {error}") from None
