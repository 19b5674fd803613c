"""Code that AutoGraph generated: whose it is, and where its source stands.

AutoGraph runs a copy of a function in the place of its source, in a file that is gone when the program ends.
It keeps a map of the lines for its own tracebacks; where another version keeps it elsewhere, the place of
such a function is not known, and its name still is.
"""

from __future__ import annotations

import contextlib
import re
import sys
from types import CodeType
from typing import Any

from pullback.view.definition import GENERATED, inner

API = "tensorflow.python.autograph.impl.api"
# Functions around every generated one, and what stands before its name.
AROUND = re.compile(r"\b(outer_factory\.inner_factory\.)+|\btf__")


def code_of(function: Any) -> CodeType | None:
    """Give the generated code of a function; None for one that runs as it was written."""
    code = getattr(inner(function), "__code__", None)
    return code if code is not None and GENERATED in code.co_filename else None


def source_name(name: str) -> str:
    """Give the name that a generated function has in its source."""
    return AROUND.sub("", name)


def source_location(code: CodeType) -> tuple[str, int]:
    """Find the file and the line that generated code was made of; nothing where nobody knows."""
    with contextlib.suppress(AttributeError, KeyError):
        known = sys.modules[API]._TRANSPILER._cache._cache
        for made in [factory for found in list(known.values()) for factory in list(found.values())]:
            if made.module.__file__ != code.co_filename:
                continue
            lines = {at.lineno: origin.loc for at, origin in made.source_map.items()}
            after = [line for line in sorted(lines) if line >= code.co_firstlineno]
            if after:
                return str(lines[after[0]].filename), int(lines[after[0]].lineno)
    return "", 0
