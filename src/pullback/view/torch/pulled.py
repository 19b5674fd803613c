"""Listening to the gradients of PyTorch's own rules: with which cotangents a Function is gone back through.

The node of a call asks for the function to run before it runs it; that question is listened to. A Function
that a transform of `torch.func` made stands for the one in the closure of its backward.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from pullback.patched import patched
from pullback.view.native import Listener, Native

RUNNERS = ("apply", "apply_boxed")  # the second takes all cotangents as one list


def listening(
    listener: Listener, module: Any, who: Callable[[Any], Native]
) -> contextlib.AbstractContextManager[None]:
    """Tell of every backward of a Function; `who` describes its class."""
    ask = getattr(module.BackwardCFunction, "_get_user_fn", None)
    if ask is None:  # another version, built otherwise
        return contextlib.nullcontext()

    @functools.wraps(ask)
    def asked(self: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_name in RUNNERS:
            given = caller.f_locals["args"]
            given = given[0] if caller.f_code.co_name == RUNNERS[1] else given
            listener.pulled(lambda: who(_written(self._forward_cls)), lambda: list(given))
        return ask(self)

    return patched(module.BackwardCFunction, _get_user_fn=asked)


def _written(kind: Any) -> Any:
    """Give the Function that a user wrote."""
    backward = kind.backward
    code = getattr(backward, "__code__", None)
    if code is None or not kind.__module__.startswith("torch."):
        return kind
    cells = dict(zip(code.co_freevars, backward.__closure__ or ()))
    return _written(cells["autograd_function"].cell_contents) if "autograd_function" in cells else kind
