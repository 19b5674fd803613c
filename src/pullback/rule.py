"""The rule: a forward function and what is claimed of its gradient.

A rule is a frozen value that knows no framework. Hosts turn it into a native operation, the checker
verifies the claim it makes. `body` is the function as the user wrote it: it returns its outputs and `grad`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Intent:
    """State what a pullback claims to be.

    `exact`: the derivative of the forward. `like`: the derivative of another function. `differs`: something
    else on purpose, for the reason given.
    """

    kind: Literal["exact", "like", "differs"] = "exact"
    function: Callable[..., Any] | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.kind == "like":
            return f"the derivative of {getattr(self.function, '__name__', repr(self.function))}"
        if self.kind == "differs":
            return f"different on purpose: {self.reason}"
        return "the derivative"


EXACT = Intent()


@dataclass(frozen=True, eq=False)
class Rule:
    """Hold everything that is known of one custom gradient."""

    body: Callable[..., Any]
    name: str
    signature: inspect.Signature
    intent: Intent = EXACT
    order: int | None = None
    pushforward: Callable[..., Any] | None = None
    source: str = field(default="", compare=False)

    def __repr__(self) -> str:
        parameters = ", ".join(self.signature.parameters)
        parts = [f"{self.name}({parameters})", str(self.intent)]
        if self.order is not None:
            parts.append(f"order {self.order} only")
        if self.pushforward is not None:
            parts.append("with a pushforward")
        if self.source:
            parts.append(self.source)
        return f"<rule {' · '.join(parts)}>"


def source_of(function: Callable[..., Any]) -> str:
    """Give `file.py:line` of a function, or nothing when it has no Python source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
