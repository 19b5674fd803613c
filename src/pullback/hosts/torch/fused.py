"""PyTorch's own activations and norms, and their pullbacks, from the inputs alone.

The statistics of a norm are computed again, by the kernel of the forward pass or by one sum. What a product
needs is written into memory that is new already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from pullback.hosts.fused import Fused
from pullback.hosts.torch import private

_aten = torch.ops.aten
_FULL = (torch.float32, torch.float64)


def _plain(pull: Callable[..., Any]) -> Callable[..., Any]:
    """Decline where somebody records, maps or pushes: not all of these kernels have all derivatives."""

    def pulled(*args: Any) -> Any:
        if torch.is_grad_enabled() or private.transforming() or private.level() >= 0:
            return None
        return pull(*args)

    return pulled


def _floating(value: Callable[..., Any]) -> Callable[..., Any]:
    """Decline what is no tensor of real floating numbers: the formula has the words for it."""

    def valued(x: Any, *args: Any) -> Any:
        return value(x, *args) if torch.is_tensor(x) and x.is_floating_point() else None

    return valued


def _activation(value: Callable[..., Any], pull: Callable[..., Any]) -> Fused:
    """Give a function of each number; a cotangent of another shape or dtype is for the formula."""

    def pulled(dy: Any, x: Any, *options: Any) -> Any:
        return pull(dy, x, *options) if dy.shape == x.shape and dy.dtype == x.dtype else None

    return Fused(_floating(value), _plain(pulled), _own(lambda *_: value))


def _own(settle: Callable[..., Any]) -> Callable[..., Any]:
    """Offer an operation that PyTorch differentiates itself; in a half its second order loses digits."""

    def settled(x: Any, *args: Any) -> Any:
        return settle(x, *args) if x.dtype in _FULL else None

    return settled


def _gelu(x: Any, approximate: str) -> Any:
    return functional.gelu(x, approximate=approximate)


def _gelu_pulled(dy: Any, x: Any, approximate: str) -> Any:
    return _aten.gelu_backward(dy, x, approximate=approximate)


def _gelu_pulled_over(dy: Any, x: Any, approximate: str) -> Any:
    return _aten.gelu_backward.grad_input(dy, x, approximate=approximate, grad_input=dy)


def _silu_pulled_over(dy: Any, x: Any) -> Any:
    return _aten.silu_backward.grad_input(dy, x, grad_input=dy)


def _gated(activation: Callable[..., Any], pull: Callable[..., Any]) -> Fused:
    """Give activation(gate)·x, for a gate and an x of one shape; `pull` writes over the cotangent."""

    def value(gate: Any, x: Any, *options: Any) -> Any:
        if not torch.is_tensor(x) or gate.shape != x.shape or gate.dtype != x.dtype:
            return None
        found = activation(gate, *options)
        return found * x if private.transforming() else found.mul_(x)

    def pulled(dy: Any, gate: Any, x: Any, *options: Any) -> Any:
        if gate.shape != x.shape or gate.dtype != x.dtype:
            return None
        return pull(dy * x, gate, *options), activation(gate, *options).mul_(dy)

    return Fused(_floating(value), _plain(pulled))


def _layer_norm(x: Any, scale: Any, offset: Any, count: int, eps: float) -> Any:
    return functional.layer_norm(x, x.shape[x.ndim - count :], scale, offset, eps)


def _own_layer_norm(x: Any, scale: Any, offset: Any, count: int, eps: float) -> Any:
    shape = private.shape_of(x)[x.ndim - count :]
    return lambda x, scale, offset, *_: functional.layer_norm(x, shape, scale, offset, eps)


def _layer_norm_pulled(dy: Any, x: Any, scale: Any, offset: Any, count: int, eps: float) -> Any:
    shape = x.shape[x.ndim - count :]
    # The kernel is twice as fast with both of them as with none.
    weight = torch.ones(shape, dtype=x.dtype, device=x.device) if scale is None else scale
    bias = torch.zeros_like(weight) if offset is None else offset
    mean, rate = _aten.native_layer_norm(x, shape, weight, bias, eps)[1:]  # its y is let go at once
    wanted = [True, scale is not None, offset is not None]
    found = _aten.native_layer_norm_backward(dy, x, shape, mean, rate, scale, offset, wanted)
    return tuple(part for part in found if part is not None)


def _batch_norm(x: Any, scale: Any, offset: Any, eps: float) -> Any:
    if (torch.is_grad_enabled() and x.requires_grad) or private.transforming() or private.level() >= 0:
        return None  # the kernel takes its statistics for constants
    if not x.numel():
        return None  # PyTorch warns of the statistics of nothing
    mean, variance = _statistics(x)
    return functional.batch_norm(x, mean, variance, scale, offset, False, 0.0, eps), mean, variance


def _statistics(x: Any) -> Any:
    """Give the mean and the variance of each channel."""
    if x.is_cpu and not private.is_hollow(x):  # ten times as fast, but of numbers alone
        return _aten.batch_norm_update_stats(x, None, None, 0.0)
    variance, mean = torch.var_mean(x, [i for i in range(x.ndim) if i != 1], correction=0)
    return mean, variance


def _own_batch_norm(x: Any, scale: Any, offset: Any, eps: float) -> Any:
    """Give the norm as PyTorch differentiates it, and what its kernel leaves: the variance is over n − 1."""
    shape = private.shape_of(x)
    channels = shape[1]
    if math.prod(shape) < 2 * channels or not channels:
        return None  # PyTorch refuses one value

    def run(x: Any, scale: Any, offset: Any, *_: Any) -> Any:
        if private.transforming() or private.level() >= 0:
            return None  # what it writes to has neither batches nor tangents
        mean, variance = x.new_zeros(channels), x.new_zeros(channels)
        y = functional.batch_norm(x, mean, variance, scale, offset, True, 1.0, eps)
        return y, mean, variance

    return run


def _batch_norm_pulled(dys: Any, x: Any, scale: Any, offset: Any, eps: float) -> Any:
    dy, dmean, dvariance = dys
    if not x.numel() or private.is_hollow(dmean):
        return None  # of nothing, or whether the statistics have cotangents is not known yet
    mean, variance = _statistics(x)
    wanted = [True, scale is not None, offset is not None]
    rate = torch.rsqrt(variance + eps)
    found = _aten.native_batch_norm_backward(dy, x, scale, None, None, mean, rate, True, eps, wanted)
    parts = [part for part, given in zip(found, wanted) if given]
    if dmean.any() or dvariance.any():
        places, count = (slice(None), *[None] * (x.ndim - 2)), x.numel() // x.shape[1]
        moved = dmean[places] + 2 * dvariance[places] * (x - mean[places])
        parts[0] = parts[0] + moved / count
    return tuple(parts)


def _recorded(*args: Any) -> None:
    """Decline: PyTorch records the kernel itself, and has its pullback."""


def _attention(q: Any, k: Any, v: Any, causal: bool, scale: float, groups: int) -> Any:
    """Attend by the kernel of PyTorch, which holds no scores either, and which PyTorch differentiates itself.

    It has neither tangents nor batches of its own.
    """
    if private.transforming() or private.level() >= 0:
        return None
    return functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, scale=scale, enable_gqa=groups > 1
    )


FUSED = {
    "attention": Fused(_attention, _recorded),
    "batch_norm": Fused(_floating(_batch_norm), _plain(_batch_norm_pulled), _own(_own_batch_norm)),
    "geglu": _gated(_gelu, _gelu_pulled_over),
    "gelu": _activation(_gelu, _gelu_pulled),
    "layer_norm": Fused(_floating(_layer_norm), _plain(_layer_norm_pulled), _own(_own_layer_norm)),
    "mish": _activation(functional.mish, _aten.mish_backward),
    "silu": _activation(functional.silu, _aten.silu_backward),
    "swiglu": _gated(functional.silu, _silu_pulled_over),
}
