"""Listening to the gradients of TensorFlow's own rules: with which cotangents a `grad` is called.

Both functions that run a rule take what is nested apart, right after its body returned, and put cotangents
together, right before they call its `grad`: with two functions of a module that is their own. Those are
listened to, and the frame that asks says who it is.
"""

from __future__ import annotations

import contextlib
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from pullback.patched import patched
from pullback.view.native import Listener, Native

NAME = "composite_tensor_gradient"
APART, TOGETHER = "get_flat_tensors_for_gradients", "replace_flat_tensors_for_gradients"
PULLING = ("actual_grad_fn", "tape_grad_fn")


def listening(
    listener: Listener, module: Any, seen: Callable[[Any], Native]
) -> contextlib.AbstractContextManager[None]:
    """Tell of every gradient of a rule; `seen` says who has a body."""
    structures = getattr(module, NAME, None)
    if not hasattr(structures, APART) or not hasattr(structures, TOGETHER):  # another version
        return contextlib.nullcontext()
    bodies: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by `grad`

    def apart(tensors: Any) -> Any:
        here = sys._getframe(1).f_locals
        if "f" in here and "grad_fn" in here:
            with contextlib.suppress(TypeError):  # a callable that takes no weak reference
                bodies.setdefault(here["grad_fn"], here["f"])
        return getattr(structures, APART)(tensors)

    def together(tensors: Any, others: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_name in PULLING:
            body = bodies.get(caller.f_locals.get("grad_fn"))
            if body is not None:
                listener.pulled(lambda: seen(body), lambda: list(others))
        return getattr(structures, TOGETHER)(tensors, others)

    other = types.SimpleNamespace(**{**vars(structures), APART: apart, TOGETHER: together})
    return patched(module, **{NAME: other})
