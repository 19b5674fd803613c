"""Running a function with every rule inside it bypassed, so that PyTorch differentiates the bodies.

This is the checker's first oracle. A `torch.autograd.Function` runs its `forward` with autograd recording, a
`torch.library` operator the function it was made of, pullback's own rules their bodies. Nothing is compiled
meanwhile: what was compiled with its rules has them, and what is compiled without them must not be kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch

from pullback.hosts.base import Met, meeting
from pullback.hosts.torch import HOST
from pullback.rule import EXACT

# Only the calls of the checker's own thread are bypassed.
_met: ContextVar[list[Met] | None] = ContextVar("met", default=None)

# `MyFunction.apply` may be kept in a variable, so it is this class, below it, that is asked in every call.
_Single: Any = torch.autograd.Function.__mro__[1]


class Context:
    """Stand for the `ctx` of a function that is run by hand."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.needs_input_grad = tuple(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
        self.saved_tensors: tuple[Any, ...] = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_dirty(self, *tensors: Any) -> None:
        """Take note of nothing: what is recorded is the operation itself."""

    mark_non_differentiable = mark_dirty

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


def has_setup(function: Any) -> bool:
    """Tell whether an autograd.Function has its own `setup_context`, and a `forward` without `ctx`."""
    return function.setup_context is not _Single.setup_context


def forward_of(function: Any, args: Sequence[Any], context: Context) -> Any:
    """Run the forward of an autograd.Function, of either style."""
    if not has_setup(function):
        return function.forward(context, *args)
    outputs = function.forward(*args)
    function.setup_context(context, args, outputs)
    return outputs


def is_native(function: type) -> bool:
    """Tell a function of PyTorch itself, or the one that runs pullback's rules: they stay."""
    return function.__module__.partition(".")[0] in ("torch", "pullback")


@contextlib.contextmanager
def bypassed() -> Iterator[list[Met]]:
    """Run rules as their plain bodies; the list collects the rules met."""
    with meeting(HOST) as met, torch.compiler.set_stance("force_eager"), _functions(), _operators():
        token = _met.set(met)
        try:
            yield met
        finally:
            _met.reset(token)


@contextlib.contextmanager
def _functions() -> Iterator[None]:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        met = _met.get()
        if met is None or is_native(cls):
            return super(_Single, cls).apply(*args, **kwargs)
        met.append(Met(cls.__name__, EXACT))
        return forward_of(cls, args, Context(args))

    _Single.apply = classmethod(apply)
    try:
        yield
    finally:
        del _Single.apply


@contextlib.contextmanager
def _operators() -> Iterator[None]:
    from torch._library.custom_ops import CustomOpDef

    call = CustomOpDef.__call__

    def body_only(self: Any, *args: Any, **kwargs: Any) -> Any:
        met = _met.get()
        if met is None or self._backward_fn is None:
            return call(self, *args, **kwargs)
        met.append(Met(self._name, EXACT))
        return self._init_fn(*args, **kwargs)

    CustomOpDef.__call__ = body_only  # type: ignore[method-assign]
    try:
        yield
    finally:
        CustomOpDef.__call__ = call  # type: ignore[method-assign]
