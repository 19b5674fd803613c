"""What the checker sees of single values in PyTorch: the array behind a tensor, and the tensor of an array.

NumPy has no bfloat16 of its own: `ml_dtypes` brings it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pullback.errors import UnsupportedInputError
from pullback.view.subject import Array


def array_of(tensor: Any) -> Array:
    """Give the array of a tensor, sharing nothing with it."""
    plain = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    if plain.dtype == torch.bfloat16:
        return np.array(plain.view(torch.int16).numpy()).view(_bfloat16())
    return np.array(plain.numpy())


def tensor_of(array: Array) -> Any:
    """Make a tensor that shares its memory with an array."""
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        array = np.array(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array) if array.ndim else torch.from_numpy(array.reshape(1)).view(())


def precision(name: str | None, tensor: Any) -> Any:
    """Give a floating or complex tensor the precision of a dtype."""
    if name is None:
        return tensor
    if tensor.is_complex():
        wide = {"float64": torch.complex128, "float32": torch.complex64}.get(name)
        return tensor if wide is None else tensor.to(wide)
    return tensor.to(getattr(torch, name)) if tensor.is_floating_point() else tensor


def _bfloat16() -> Any:
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedInputError.about(
            "check",
            found="a tensor of dtype bfloat16, which NumPy does not know",
            expected="the package ml_dtypes, which teaches it to NumPy",
            fix="pip install ml_dtypes",
        ) from None
    return ml_dtypes.bfloat16
