"""The PyTorch host: eager mode, `torch.func`, `torch.compile`.

This file speaks of single tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pullback.errors import UnsupportedInputError
from pullback.hosts.base import Foreign, Kind, Met, Opener, Operation, Spec, summed_axes
from pullback.hosts.torch import arrays, callback


class TorchHost:
    """Execute operations in PyTorch."""

    name = "PyTorch"
    bypassed: list[Met] | None = None  # while the checker runs bodies without their rules: the rules met
    arrays = arrays

    def owns(self, kind: type) -> bool:
        if issubclass(kind, torch.Tensor):
            return True
        return hasattr(kind, "__torch_function__") and any(
            b.__module__.startswith("keras.") for b in kind.__mro__
        )

    def opener(self, value: Any) -> Opener | None:
        return None

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def plain(self, values: Sequence[Any]) -> bool:
        return all(isinstance(v, torch.Tensor) and v.dtype.is_floating_point for v in values)

    def tensor(self, value: Any, *, where: str, argument: str) -> Any:
        tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        if tensor.is_quantized or tensor.layout != torch.strided:
            raise UnsupportedInputError.about(
                where,
                found=f"`{argument}` is a {'quantized' if tensor.is_quantized else 'sparse'} tensor",
                expected="dense tensors",
                why="a rule is written for dense tensors, and would drop the structure of a sparse one",
                fix="x.dequantize()" if tensor.is_quantized else "x.to_dense()",
            )
        return tensor

    def spec(self, tensor: Any) -> Spec:
        tensor = torch.as_tensor(tensor)
        dtype = tensor.dtype
        kind: Kind = "integer"
        if dtype.is_floating_point:
            kind = "floating"
        elif dtype.is_complex:
            kind = "complex"
        elif dtype == torch.bool:
            kind = "other"
        return Spec(tuple(tensor.shape), str(dtype).removeprefix("torch."), kind)

    def differentiable(self, tensor: Any) -> bool:
        return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)

    def outline(self, output: Any) -> Any:
        return output.shape, output.dtype, output.device

    def zeros(self, like: Any) -> Any:
        shape, dtype, device = like
        return torch.zeros(shape, dtype=dtype, device=device)

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Any]) -> bool:
        return all(
            isinstance(c, torch.Tensor) and c.shape == x.shape and c.dtype == x.dtype
            for c, x in zip(cotangents, likes)
        )

    def conform(self, cotangent: Any, like: Any) -> Any:
        return torch.as_tensor(cotangent, device=like.device).to(like.dtype)

    def unbroadcast(self, cotangent: Any, like: Any) -> Any:
        cotangent, like = torch.as_tensor(cotangent), torch.as_tensor(like)
        axes = summed_axes(tuple(cotangent.shape), tuple(like.shape))
        return cotangent.sum(axes).reshape(like.shape) if axes else cotangent

    def conjugate(self, tensor: Any) -> Any:
        return torch.conj(tensor) if isinstance(tensor, torch.Tensor) and tensor.is_complex() else tensor

    def run(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str
    ) -> Any:
        return function(*args, **kwargs)

    def apply(self, operation: Operation, tensors: list[Any]) -> list[Any]:
        if self.bypassed is not None:
            self.bypassed.append(Met(operation.name, operation.intent))
            return operation.forward(tensors)[0]
        return list(_Native.apply(operation, *tensors))

    def callback(self, foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
        return callback.callback(foreign, tensors, outputs)

    def vjp(
        self, function: Callable[..., Any], inputs: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        pull = torch.func.vjp(lambda *xs: tuple(function(*xs)), *inputs)[1]
        return list(pull(tuple(cotangents)))

    def idle(self, tensors: Sequence[Any]) -> bool:
        return self.bypassed is None and not torch.compiler.is_compiling() and callback.is_plain(tensors)

    def subject(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from pullback.hosts.torch.subject import subject

        return subject(function, *args, **kwargs)

    def override(
        self,
        function: Any,
        gradients: Mapping[Any, Any],
        make: Callable[..., Any],
        check: Callable[..., None],
    ) -> Any:
        from pullback.hosts.torch.override import override

        return override(function, gradients, make, check)


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operation: Operation, *tensors: Any) -> Any:
        outputs, ctx.pull = operation.forward(list(tensors))
        ctx.operation = operation
        ctx.save_for_backward(*tensors)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        pull = ctx.operation.forward(ctx.saved_tensors)[1] if torch.is_grad_enabled() else ctx.pull
        return (None, *pull(cotangents).inputs)


HOST = TorchHost()
