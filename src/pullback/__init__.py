"""Custom gradients you can trust: define, replace, wrap, check and see them."""

from typing import TYPE_CHECKING as _CHECKING_TYPES
from typing import Any as _Any

from pullback import errors
from pullback.define import custom_gradient
from pullback.elementwise import elementwise, unbroadcast
from pullback.example import example
from pullback.rule import Intent, Rule

if _CHECKING_TYPES:
    from pullback import testing
    from pullback.check.check import check

__version__ = "0.1.0"

__all__ = [
    "Intent",
    "Rule",
    "check",
    "custom_gradient",
    "elementwise",
    "errors",
    "example",
    "testing",
    "unbroadcast",
]


def __getattr__(name: str) -> _Any:
    # What only tests and tools need is imported when asked for. `check` is a package that can be called.
    if name in ("check", "testing"):
        import importlib

        return importlib.import_module(f"pullback.{name}")
    raise AttributeError(f"module 'pullback' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
