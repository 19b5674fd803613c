"""What a user wrote: what tells it from other rules, and where it stands.

Rules made anew in every call of a factory share their code, so they are one.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from typing import Any

from pullback.rule import written


@dataclass(frozen=True)
class Source:
    """Name a rule: the key that tells it from others, and the module that it belongs to."""

    key: Any
    module: str

    @staticmethod
    def of(body: Any) -> Source:
        """Name the rule that was made of a function."""
        return Source(identity(body), str(getattr(body, "__module__", "") or ""))


def identity(body: Any) -> Any:
    """Name the code that runs."""
    function = inner(body)
    return getattr(function, "__code__", None) or id(function)


def inner(body: Any) -> Any:
    """Give the function that the user wrote, behind methods, rules, decorators and partial arguments."""
    while True:
        function = written(getattr(body, "__func__", body))
        if not isinstance(function, functools.partial):
            return function
        body = function.func


def name_of(body: Any) -> str:
    """Give the name that the user knows a function by."""
    found = getattr(body, "__name__", None) or getattr(inner(body), "__name__", None)
    return str(found or type(body).__name__)


def place_of(body: Any) -> tuple[str, int]:
    """Give the file and line of a function, or nothing when it has no Python source."""
    code = getattr(inner(body), "__code__", None)
    return ("", 0) if code is None else (os.path.abspath(code.co_filename), code.co_firstlineno)


def caller(*machinery: str) -> tuple[str, int]:
    """Find the line from which we are called, past the modules whose names start as given."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        "__autograph_generated_file" in frame.f_code.co_filename
        or str(frame.f_globals.get("__name__", "")).startswith(("pullback.record.", *machinery))
    ):
        frame = frame.f_back
    return os.path.abspath(frame.f_code.co_filename), frame.f_lineno
