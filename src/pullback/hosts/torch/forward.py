"""Forward mode: the user's pushforward, or the transpose of a linear pullback.

The transpose of a map that is not linear is a plausible wrong number, so linearity is measured first: at the
values of the call, or at random ones under a transform, which shows no values. What was measured is
remembered on the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pullback.errors import ForwardModeError
from pullback.hosts.base import Operation, Pullback
from pullback.hosts.torch import levels

_SCALES = (1e-3, 1.0, 1e3)  # a clip is linear for small cotangents, a rounding for large ones
_TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-9, torch.complex128: 1e-9}


def push(operation: Operation, tensors: list[Any], tangents: Sequence[Any]) -> list[Any]:
    """Take tangents of the inputs to tangents of the outputs; None stands for zeros."""
    filled = [torch.zeros_like(x) if t is None else t for x, t in zip(tensors, tangents)]
    if operation.has_pushforward:
        given = operation.pushforward(tensors, filled)
        assert given is not None
        return given
    require_linear(operation, tensors)
    return _transpose(operation.forward(tensors)[1], filled)


def _transpose(pull: Pullback, tangents: Sequence[Any]) -> list[Any]:
    """Pull the tangents back through the pullback: for a linear map, its transpose."""
    zeros = pull.zeros()
    moving = [zero for zero in zeros if _differentiable(zero)]
    given: list[int] = []

    def pulled(*cotangents: Any) -> tuple[Any, ...]:
        rest = iter(cotangents)
        got = pull([next(rest) if _differentiable(zero) else zero for zero in zeros])
        given[:] = [i for i, cotangent in enumerate(got.inputs) if cotangent is not None]
        return tuple(got.inputs[i] for i in given) or (cotangents[0],)

    with torch.enable_grad():
        pull_again = torch.func.vjp(pulled, *moving)[1]
        # no cotangent at all is no tangent either
        pushed = pull_again(tuple(tangents[i] for i in given) or (torch.zeros_like(moving[0]),))
    rest = iter(pushed)
    return [next(rest) if _differentiable(zero) else None for zero in zeros]


def require_linear(operation: Operation, tensors: Sequence[Any]) -> None:
    """Refuse forward mode for a pullback that is not linear, and has no pushforward beside it."""
    key = operation.key(tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors))
    linear = operation.memo.get(key)
    if linear is None:
        linear = operation.memo[key] = _measure(operation, tensors)
    if linear != "linear":
        raise ForwardModeError.about(
            operation.where,
            found=f"forward mode was asked for, and the pullback is {linear}",
            expected="a pullback that is linear in its cotangents, or a pushforward of its own",
            why="the transpose of a map that is not linear is a wrong number",
            fix=f"@{operation.name}.pushforward\ndef _(dx, x):\n    return …",
        )


def _measure(operation: Operation, tensors: Sequence[Any]) -> str:
    with levels.left(), torch.no_grad():
        rng = torch.Generator().manual_seed(20)
        try:
            _, pull = operation.forward([_value(tensor, rng) for tensor in tensors])
            for scale in _SCALES:
                a, b = (_random_cotangents(pull, rng, scale) for _ in range(2))
                mixed = [2 * x - 3 * y for x, y in zip(a, b)]
                got = [pull(c).inputs for c in (a, b, mixed)]
                for ga, gb, gm in zip(*got):
                    if ga is not None and not _close(2 * ga - 3 * gb, gm, abs(2 * ga) + abs(3 * gb)):
                        return "not linear in its cotangents"
        except (TypeError, ValueError, RuntimeError) as error:
            if type(error).__module__.startswith("pullback."):
                raise
            return f"not known to be linear (it could not be run on its own: {type(error).__name__})"
    return "linear"


def _value(tensor: Any, rng: torch.Generator) -> Any:
    """Give a tensor with values as it is, and random numbers in the place of one without."""
    if levels.has_values(tensor):
        return tensor.detach()
    if _differentiable(tensor):
        return (0.5 + torch.rand(tensor.shape, generator=rng)).to(tensor.device, tensor.dtype)
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _random_cotangents(pull: Pullback, rng: torch.Generator, scale: float) -> list[Any]:
    made = []
    for zero in pull.zeros():
        size = scale * (0.5 + torch.rand(zero.shape, generator=rng))
        sign = 1 - 2 * torch.randint(0, 2, zero.shape, generator=rng)
        made.append((size * sign).to(zero.device, zero.dtype))
    return made


def _close(a: Any, b: Any, scale: Any) -> bool:
    tolerance = _TOLERANCE.get(a.dtype, 1e-4)
    a, b, scale = (x.to(torch.complex128) for x in (a, b, scale))
    finite = torch.isfinite(a) & torch.isfinite(b)
    sizes = scale[finite].abs()
    largest = float(sizes.max()) if sizes.numel() else 0.0
    return bool(torch.all((a - b)[finite].abs() <= tolerance * largest))


def _differentiable(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)
