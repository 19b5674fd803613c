"""The `ctx` of a `torch.autograd.Function` that is run by hand: it keeps what a backward reads of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


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
