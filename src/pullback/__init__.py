"""Custom gradients you can trust: define, replace, wrap, check and see them."""

from typing import TYPE_CHECKING as _CHECKING_TYPES
from typing import Any as _Any

from pullback import errors
from pullback.declare import declare
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
    from pullback import implicit, ops, testing
    from pullback.checker.check import check
    from pullback.graphs.trace import graph
    from pullback.graphs.why import why
    from pullback.recompute.checkpoint import checkpoint
    from pullback.recompute.reversible import reversible
    from pullback.recompute.scan import checkpoint_scan
    from pullback.watching.watch import watch
    from pullback.wrapping.wrap import external

__version__ = "0.1.0"

__all__ = [
    "Intent",
    "Rule",
    "argmax_one_hot",
    "check",
    "checkpoint",
    "checkpoint_scan",
    "clip_gradient",
    "custom_gradient",
    "declare",
    "elementwise",
    "errors",
    "example",
    "external",
    "finite_gradient",
    "forbid_gradient",
    "graph",
    "heaviside",
    "implicit",
    "loss",
    "map_gradient",
    "namespace",
    "operator",
    "ops",
    "override",
    "reverse_gradient",
    "reversible",
    "round",
    "scale_gradient",
    "sign",
    "stop_gradient",
    "straight_through",
    "surrogate",
    "testing",
    "unbroadcast",
    "watch",
    "why",
    "with_gradient",
]


# What not every program needs is imported when it is asked for.
_LATER = {
    "check": "pullback.checker.check",
    "checkpoint": "pullback.recompute.checkpoint",
    "checkpoint_scan": "pullback.recompute.scan",
    "external": "pullback.wrapping.wrap",
    "graph": "pullback.graphs.trace",
    "implicit": "pullback.implicit",
    "load_ipython_extension": "pullback.notebook",  # what %load_ext asks for
    "ops": "pullback.ops",
    "reversible": "pullback.recompute.reversible",
    "testing": "pullback.testing",
    "watch": "pullback.watching.watch",
    "why": "pullback.graphs.why",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module 'pullback' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_LATER[name])
    return module if module.__name__ == f"pullback.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
