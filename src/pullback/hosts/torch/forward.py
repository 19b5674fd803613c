"""Forward mode: the user's pushforward, or the transpose of a linear pullback.

The transpose of a map that is not linear is a plausible wrong number, so linearity is measured first: at the
values of the call, or at random ones under a transform, which shows no values. What was measured is
remembered on the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pullback.hosts import linear
from pullback.hosts.operation import Operation, Pullback
from pullback.hosts.torch import private, state
from pullback.hosts.torch.arrays import differentiable


def push(operation: Operation, tensors: list[Any], tangents: Sequence[Any]) -> list[Any]:
    """Take tangents of the inputs to tangents of the outputs; None stands for zeros."""
    filled = [torch.zeros_like(x) if t is None else t for x, t in zip(tensors, tangents)]
    if operation.has_pushforward:
        given = operation.pushforward(tensors, filled)
        assert given is not None
        return given
    require_linear(operation, tensors)
    with state.put_back():
        pull = operation.forward(tensors)[1]
    return _transpose(pull, filled)


def _transpose(pull: Pullback, tangents: Sequence[Any]) -> list[Any]:
    """Pull the tangents back through the pullback: for a linear map, its transpose."""
    zeros = pull.zeros()
    moving = [zero for zero in zeros if differentiable(zero)]
    given: list[int] = []

    def pulled(*cotangents: Any) -> tuple[Any, ...]:
        rest = iter(cotangents)
        got = pull([next(rest) if differentiable(zero) else zero for zero in zeros])
        given[:] = [i for i, cotangent in enumerate(got.inputs) if cotangent is not None]
        return tuple(got.inputs[i] for i in given) or (cotangents[0],)

    with torch.enable_grad():
        pull_again = torch.func.vjp(pulled, *moving)[1]
        # no cotangent at all is no tangent either
        pushed = pull_again(tuple(tangents[i] for i in given) or (torch.zeros_like(moving[0]),))
    rest = iter(pushed)
    return [next(rest) if differentiable(zero) else None for zero in zeros]


def require_linear(operation: Operation, tensors: Sequence[Any]) -> None:
    """Refuse forward mode for a pullback that is not linear, and has no pushforward beside it."""
    kinds = tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)
    failures = (TypeError, ValueError, RuntimeError)  # of a body at random inputs
    linear.require(operation, kinds, lambda: _measure(operation, tensors), failures)


def _measure(operation: Operation, tensors: Sequence[Any]) -> str:
    with private.left(), torch.no_grad():
        rng = np.random.default_rng(20)
        with state.put_back():
            _, pull = operation.forward([_value(tensor, rng) for tensor in tensors])
        zeros = pull.zeros()

        def pulled(cotangents: list[Any]) -> list[Any]:
            got = pull([torch.as_tensor(c).to(z.device, z.dtype) for c, z in zip(cotangents, zeros)])
            return [None if g is None else g.to("cpu", torch.complex128).numpy() for g in got.inputs]

        dtypes = [str(x.dtype).removeprefix("torch.") for x in (*zeros, *tensors)]
        return linear.measured(pulled, [tuple(zero.shape) for zero in zeros], dtypes)


def _value(tensor: Any, rng: np.random.Generator) -> Any:
    """Give a tensor with values as it is, and random numbers in the place of one without."""
    if private.has_values(tensor):
        return tensor.detach()
    if differentiable(tensor):
        return torch.as_tensor(linear.value(tensor.shape, rng)).to(tensor.device, tensor.dtype)
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
