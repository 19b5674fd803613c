"""The PyTorch host: eager mode, `torch.func`, forward mode, `torch.compile`.

`eager.py` and `transforms.py` hold the two ways to give an operation its own gradient; this file speaks of
single tensors.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from pullback.dtypes import Kind, kind
from pullback.errors import UnsupportedInputError
from pullback.hosts import refusals
from pullback.hosts.base import Host, Linear, Opener
from pullback.hosts.dynamo import Counter
from pullback.hosts.keras import is_weight
from pullback.hosts.operation import Operation
from pullback.hosts.overrides import Gradients
from pullback.hosts.specs import Spec, summed_axes
from pullback.hosts.torch import (
    arrays,
    callback,
    control,
    eager,
    fused,
    modules,
    private,
    torchscript,
    transforms,
)
from pullback.hosts.torch.operator import operator
from pullback.hosts.torch.run import run

# What every call looks at, several times.
_TENSOR, _PARAMETER, _STRIDED = torch.Tensor, torch.nn.Parameter, torch.strided
_FLOATING = arrays.FLOATING


@functools.cache
def _facts(dtype: Any) -> tuple[str, Kind]:
    """Give the name of a dtype, and its kind."""
    name = str(dtype).removeprefix("torch.")
    return name, kind(name)


class TorchHost(Host):
    """Execute operations in PyTorch."""

    name = "PyTorch"
    arrays: Any = arrays
    fused: Any = fused.FUSED

    def owns(self, kind: type) -> bool:
        return issubclass(kind, torch.Tensor) or (is_weight(kind) and hasattr(kind, "__torch_function__"))

    def opener(self, value: Any) -> Opener | None:
        if isinstance(value, torch.nn.Module):
            return modules.opened
        is_structure = type(value) in private.pytree.SUPPORTED_NODES and type(value) is not Counter
        return _open if is_structure else None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    # ── tensors ──────────────────────────────────────────────────────────────────────────────────────────

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, _TENSOR)

    def ready(self, values: Sequence[Any]) -> bool:
        for value in values:
            if type(value) is not _TENSOR and type(value) is not _PARAMETER:
                return False
            if value.dtype not in _FLOATING or value.layout is not _STRIDED or value.is_nested:
                return False
        return True

    def tensor(self, value: Any, *, where: str, argument: str) -> Any:
        refusals.require_numbers(value, where, argument)
        tensor = value if isinstance(value, _TENSOR) else torch.as_tensor(getattr(value, "value", value))
        kind = (
            "quantized"
            if tensor.is_quantized
            else "nested"
            if tensor.is_nested
            else "sparse"
            if tensor.layout is not _STRIDED
            else ""
        )
        if kind:
            fixes = {"quantized": "x.dequantize()", "nested": "torch.nested.to_padded_tensor(x, 0.0)"}
            raise UnsupportedInputError.about(
                where,
                found=f"`{argument}` is a {kind} tensor",
                expected="dense tensors",
                why="a rule is written for dense tensors, and would drop the structure of a sparse one",
                fix=fixes.get(kind, "x.to_dense()"),
            )
        return tensor

    def spec(self, tensor: Any) -> Spec:
        if not isinstance(tensor, _TENSOR):
            tensor = torch.as_tensor(tensor)
        return Spec(private.shape_of(tensor), *_facts(tensor.dtype))

    def device(self, tensor: Any) -> Any:
        device = getattr(tensor, "device", None)
        return None if device is None or device.type == "cpu" else device

    def differentiable(self, tensor: Any) -> bool:
        dtype = tensor.dtype
        return dtype.is_floating_point or dtype.is_complex

    def outline(self, output: Any) -> Any:
        return output.shape, output.dtype, output.device

    def lone(self, output: Any) -> Any:
        if type(output) is not _TENSOR:
            return None
        dtype = output.dtype
        return (output.shape, dtype, output.device) if dtype in _FLOATING else None

    def zeros(self, like: Any) -> Any:
        shape, dtype, device = like
        return torch.zeros(shape, dtype=dtype, device=device)

    # ── cotangents ───────────────────────────────────────────────────────────────────────────────────────

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Any]) -> bool:
        for cotangent, like in zip(cotangents, likes):
            if (
                not isinstance(cotangent, _TENSOR)
                or cotangent.dtype != like.dtype
                or cotangent.shape != like.shape
                or cotangent.device != like.device
            ):
                return False
        return True

    def conform(self, cotangent: Any, like: Any) -> Any:
        if not isinstance(cotangent, _TENSOR):
            cotangent = torch.as_tensor(cotangent, device=like.device)
        return cotangent.to(like.device, like.dtype)

    def unbroadcast(self, cotangent: Any, like: Any) -> Any:
        cotangent, like = torch.as_tensor(cotangent), torch.as_tensor(like)
        axes = summed_axes(tuple(cotangent.shape), tuple(like.shape))
        return cotangent.sum(axes).reshape(like.shape) if axes else cotangent

    def conjugate(self, tensor: Any) -> Any:
        return torch.conj(tensor) if isinstance(tensor, _TENSOR) and tensor.is_complex() else tensor

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────

    run = staticmethod(run)

    def apply(self, operation: Operation, tensors: list[Any]) -> list[Any]:
        if self.bypassed is not None and self.bypasses(operation):
            return operation.forward(tensors)[0]
        if private.transforming() or private.level() >= 0:
            return transforms.handed(operation, tensors)
        if private.jit_tracing():
            return torchscript.apply(operation, tensors)
        return eager.apply(operation, tensors)

    callback = staticmethod(callback.callback)

    def pullback(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Linear:
        pull = torch.func.vjp(lambda *xs: tuple(function(*xs)), *inputs)[1]
        return lambda cotangents: list(pull(tuple(cotangents)))

    loop = staticmethod(control.loop)
    require = staticmethod(control.require)
    operator = staticmethod(operator)

    def readable(self, tensor: Any) -> bool:
        return tensor.device.type == "cpu" and self.idle([tensor.detach()])

    def recording(self, tensors: Sequence[Any]) -> bool:
        return (
            torch.is_grad_enabled()
            and any(tensor.requires_grad for tensor in tensors)
            and self.idle([tensor.detach() for tensor in tensors])
        )

    def idle(self, tensors: Sequence[Any]) -> bool:
        return self.bypassed is None and not torch.compiler.is_compiling() and private.unseen(tensors)

    def override(self, function: Any, gradients: Gradients) -> Any:
        from pullback.hosts.torch.model import override

        return override(function, gradients)


def _open(value: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Take one level of a registered structure apart."""
    node = private.pytree.SUPPORTED_NODES[type(value)]
    parts, context = node.flatten_fn(value)
    return list(parts), lambda parts: node.unflatten_fn(parts, context)


HOST = TorchHost()
