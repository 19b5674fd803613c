"""Copies of PyTorch's tensors, made where no transformation, mode or compiler of the program can see it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pullback.dtypes import CARRIER, is_guest, of_numpy
from pullback.record.sample import Spec


def owns(leaf: Any) -> bool:
    """Tell whether a leaf is a tensor or a parameter."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(leaf, torch.Tensor)


def freeze(tensor: Any) -> Any:
    """Copy a tensor, or the one that a transformation wraps; else take shape and dtype."""
    import torch

    value, cuts = _carried(tensor)
    if value is None:
        return spec(tensor)
    # No transformation, mode or subclass of the program may see what is done here.
    with (
        torch._C._DisableFuncTorch(),
        torch._C._DisableTorchDispatch(),
        torch._C.DisableTorchFunctionSubclass(),
        torch.no_grad(),
    ):
        plain = value.detach()
        if plain.layout != torch.strided or plain.is_quantized or plain.is_nested:
            return plain.clone()
        frozen = _array(plain.resolve_conj().resolve_neg().to("cpu", copy=True))
    if frozen is None:
        return plain.clone()
    for axis in reversed(cuts):
        frozen = np.take(frozen, 0, axis)
    return np.array(frozen)


def _array(tensor: Any) -> Any:
    """Give a tensor as an array; None for a dtype that NumPy has no name for."""
    try:
        return tensor.numpy()
    except TypeError:
        name = str(tensor.dtype).removeprefix("torch.")
    dtype, whole = of_numpy(name), CARRIER.get(name)
    if dtype is None or whole is None:
        return None
    return tensor.view(getattr(sys.modules["torch"], whole)).numpy().view(dtype)


def spec(tensor: Any) -> Spec:
    """Take the shape and dtype of a tensor."""
    # An `int()` of a length that is not settled yet would settle it for the program.
    shape = tuple(n if type(n) is int else None for n in tensor.shape)
    return Spec(shape, str(tensor.dtype).removeprefix("torch."))


def _carried(tensor: Any) -> tuple[Any, list[int]]:
    """Follow the wrappers of `torch.func` down to a value, and list the batch axes on the way.

    While `torch.compile` or `torch.export` trace there is none.
    """
    import torch

    functorch = torch._C._functorch
    cuts: list[int] = []
    while functorch.is_functorch_wrapped_tensor(tensor):
        axis = functorch.maybe_get_bdim(tensor)
        if axis >= 0:
            cuts.append(axis)
        tensor = functorch.get_unwrapped(tensor)
    # One that dispatches by itself may hold nothing, or its data elsewhere: fake, functional, sharded ones.
    own = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if own or tensor.is_meta or torch._is_functional_tensor(tensor):
        return None, []
    return tensor, cuts


def device(tensor: Any) -> str:
    """Name the device of a tensor."""
    return "" if tensor.is_meta else str(tensor.device)


def thaw(array: Any, device: str) -> Any:
    """Make a tensor of an array again, on the device that it came from."""
    import torch

    if is_guest(array.dtype):
        dtype = getattr(torch, array.dtype.name)
        return torch.tensor(array.astype(np.float32), device=device or None).to(dtype)
    return torch.tensor(array, device=device or None)
