"""A function in front of rules that compilers of Python take whole, as they take a rule.

AutoGraph and Dynamo would read how it looks at its arguments, which is no part of a program.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from pullback.hosts import dynamo
from pullback.hosts.dynamo import Opaque, called_whole, is_tracing
from pullback.typed import F
from pullback.unconverted import unconverted


def whole(function: F) -> F:
    """Have a compiler run a function, and read the operations that come of it."""
    opaque = Opaque()

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if is_tracing(dynamo.PROGRAM):
            return called_whole(opaque, args, kwargs)
        return function(*args, **kwargs)

    opaque.function = run
    return cast(F, unconverted(run))
