"""PyTorch as the recorder sees it."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback.record.framework import Framework
from pullback.record.sample import Spec
from pullback.view.native import Listen, Listener
from pullback.view.torch import native, pulled


class Torch(Framework):
    """Copy tensors, and those that `torch.func` wraps."""

    natives = native
    loggers = ("torch._dynamo", "torch._functorch", "torch.export", "torch.fx")
    flows_inside = True

    def listeners(self, listener: Listener) -> dict[str, Listen]:
        return {**super().listeners(listener), "torch._dynamo.trace_rules": _skipped}

    def compiles(self) -> bool:
        return "torch._dynamo" in sys.modules

    def owns(self, leaf: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and hasattr(torch, "Tensor") and isinstance(leaf, torch.Tensor)

    def spec(self, tensor: Any) -> Spec:
        # An `int()` of a length that is not settled yet would settle it for the program.
        shape = tuple(n if type(n) is int else None for n in tensor.shape)
        return Spec(shape, str(tensor.dtype).removeprefix("torch."))

    def trained(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def training(self, tensor: Any) -> Any:
        changes = tensor.is_floating_point() or tensor.is_complex()
        return tensor.detach().requires_grad_() if changes else tensor

    def carried(self, tensor: Any) -> tuple[Any, list[int]]:
        from pullback.hosts.torch import private

        tensor, axes = private.peeled(tensor)
        return (None, []) if private.is_hollow(tensor) else (tensor, axes)

    def copied(self, value: Any) -> Any:
        import torch

        from pullback.hosts.torch import private
        from pullback.view.torch import leaves

        with private.aside():
            tensor = value.detach()
            if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
                return tensor.clone()
            # A view by NumPy would settle the size of the memory, which the program may change.
            own = tensor.resolve_conj().resolve_neg().to("cpu", copy=True)
            array = leaves.viewed(own)
            return own if array is None else array

    def still(self, leaves: Sequence[Any]) -> frozenset[int]:
        tensors = {i: leaf for i, leaf in enumerate(leaves) if self.owns(leaf)}
        quiet = frozenset(i for i, leaf in tensors.items() if not leaf.requires_grad)
        # A call that nobody differentiates says nothing of what is asked.
        return frozenset() if len(quiet) == len(tensors) else quiet

    def packed(self, leaf: Any) -> tuple[Any, Callable[[Any], Any]] | None:
        from pullback.view.torch import leaves

        if not leaves.is_sparse(leaf):
            return None
        return leaves.values_of(leaf.detach()), functools.partial(leaves.filled, leaf)

    def operation(self, kind: str, names: Sequence[str]) -> Callable[..., Any] | None:
        import torch

        return next(
            (getattr(m, kind) for m in (torch, torch.nn.functional, torch.special) if hasattr(m, kind)), None
        )

    def device(self, tensor: Any) -> str:
        return "" if tensor.is_meta else str(tensor.device)

    def thaw(self, array: Any, device: str) -> Any:
        import torch

        from pullback.view.torch import leaves

        return leaves.tensor_of(array).to(device or torch.get_default_device(), copy=True)


def _skipped(module: Any) -> contextlib.AbstractContextManager[None]:
    """Keep the compiler from reading the recorder itself, when a program compiles what calls it."""
    for name in ("pullback.record", native.__name__, pulled.__name__):
        module.add(name)
    return contextlib.nullcontext()


FRAMEWORK = Torch()
