"""What the checker sees of single values in PyTorch: the array of a tensor, and the tensor of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pullback.dtypes import CARRIER, COMPLEX, of_numpy
from pullback.errors import UnsupportedInputError
from pullback.view.subject import Array


def array_of(tensor: Any) -> Array:
    """Give the array of a tensor, sharing nothing with it."""
    plain = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    name = str(plain.dtype).removeprefix("torch.")
    if name in CARRIER:
        return np.array(plain.view(getattr(torch, CARRIER[name])).numpy()).view(_guest(name))
    return np.array(plain.numpy())


def tensor_of(array: Array) -> Any:
    """Make a tensor that shares its memory with an array."""
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        array = np.array(array)
    name = array.dtype.name
    if name in CARRIER:
        return torch.from_numpy(array.view(CARRIER[name])).view(getattr(torch, name))
    return torch.from_numpy(array) if array.ndim else torch.from_numpy(array.reshape(1)).view(())


def precision(name: str | None, tensor: Any) -> Any:
    """Give a floating or complex tensor the precision of a dtype."""
    if name is None:
        return tensor
    if tensor.is_complex():
        return tensor.to(getattr(torch, COMPLEX[name])) if name in COMPLEX else tensor
    return tensor.to(getattr(torch, name)) if tensor.is_floating_point() else tensor


def _guest(name: str) -> Any:
    dtype = of_numpy(name)
    if dtype is None:
        raise UnsupportedInputError.about(
            "check",
            found=f"a tensor of dtype {name}, which NumPy does not know",
            expected="the package ml_dtypes, which teaches it to NumPy",
            fix="pip install ml_dtypes",
        )
    return dtype
