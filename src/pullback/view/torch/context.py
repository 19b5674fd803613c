"""A `torch.autograd.Function` that is run by hand: its `ctx`, its arguments, and one made of functions."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any

from pullback.rule import shown_signature


class Context:
    """Stand for the `ctx` of a function that is run by hand."""

    materialize_grads = True

    def __init__(self, needs_input_grad: Iterable[bool]) -> None:
        self.needs_input_grad = tuple(needs_input_grad)
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_dirty(self, *tensors: Any) -> None:
        """Take note of nothing: what is recorded is the operation itself."""

    mark_non_differentiable = mark_dirty

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


def function_of(run: Any, setup: Any, back: Any) -> Any:
    """Give what an operator of `torch.library` is, as a Function; what is registered under its name stays."""
    torch: Any = sys.modules["torch"]

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        if setup is not None:
            setup(ctx=ctx, inputs=inputs, output=output)

    held = {"forward": run, "setup_context": keep, "backward": back}
    made: Any = type(run.__name__, (torch.autograd.Function,), {k: staticmethod(f) for k, f in held.items()})
    return made.apply


def has_setup(function: Any) -> bool:
    """Tell whether a Function has its own `setup_context`, and a `forward` without `ctx`."""
    return function.setup_context is not sys.modules["torch"].autograd.Function.setup_context


@functools.lru_cache(maxsize=1024)
def signature_of(function: Any) -> inspect.Signature | None:
    """Give the arguments of the `apply` of a Function."""
    whole = shown_signature(function.forward)
    if whole is None:
        return None
    return whole.replace(parameters=list(whole.parameters.values())[0 if has_setup(function) else 1 :])
