"""Custom gradients you can trust: define, replace, wrap, check and see them."""

from typing import TYPE_CHECKING as _CHECKING_TYPES
from typing import Any as _Any

from pullback import errors
from pullback.define import custom_gradient
from pullback.elementwise import elementwise, unbroadcast
from pullback.example import example
from pullback.namespace import namespace
from pullback.operator import operator
from pullback.replace.argmax import argmax_one_hot
from pullback.replace.clip import clip_gradient
from pullback.replace.finite import finite_gradient
from pullback.replace.loss import loss
from pullback.replace.map import map_gradient
from pullback.replace.override import override
from pullback.replace.reverse import reverse_gradient
from pullback.replace.scale import scale_gradient
from pullback.replace.steps import heaviside, round, sign
from pullback.replace.stop import forbid_gradient, stop_gradient
from pullback.replace.straight_through import straight_through
from pullback.replace.surrogate import surrogate
from pullback.replace.with_gradient import with_gradient
from pullback.rule import Intent, Rule

if _CHECKING_TYPES:
    from pullback import testing
    from pullback.check.check import check
    from pullback.external.wrap import external

__version__ = "0.1.0"

__all__ = [
    "Intent",
    "Rule",
    "argmax_one_hot",
    "check",
    "clip_gradient",
    "custom_gradient",
    "elementwise",
    "errors",
    "example",
    "external",
    "finite_gradient",
    "forbid_gradient",
    "heaviside",
    "loss",
    "map_gradient",
    "namespace",
    "operator",
    "override",
    "reverse_gradient",
    "round",
    "scale_gradient",
    "sign",
    "stop_gradient",
    "straight_through",
    "surrogate",
    "testing",
    "unbroadcast",
    "with_gradient",
]


def __getattr__(name: str) -> _Any:
    # What not every program needs is imported when asked for. `check` and `external` are
    # packages that can be called.
    if name in ("check", "external", "testing"):
        import importlib

        return importlib.import_module(f"pullback.{name}")
    raise AttributeError(f"module 'pullback' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
