"""The array behind a tensor of PyTorch, and the tensor of an array, for the checker and the recorder.

NumPy has no bfloat16 and no smaller floats of its own: `ml_dtypes` brings them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pullback.dtypes import CARRIER, of_numpy
from pullback.errors import UnsupportedInputError
from pullback.view.subject import Array

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


def array_of(tensor: Any) -> Array:
    """Give the array of a tensor, sharing nothing with it."""
    held = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if held._is_zerotensor():  # zeros without memory, as some of PyTorch's own gradients are
        held = held.clone()
    array = viewed(held if held.layout == torch.strided else held.to_dense())
    if array is None:
        raise UnsupportedInputError.about(
            "check",
            found=f"a tensor of dtype {_name(held)}, which NumPy does not know",
            expected="the package ml_dtypes, which teaches it to NumPy",
            fix="pip install ml_dtypes",
        )
    return np.array(array)


def viewed(tensor: Any) -> Array | None:
    """Give the array on the memory of a dense tensor; None for a dtype that has no name in NumPy."""
    name = _name(tensor)
    if name not in CARRIER:
        return np.asarray(tensor.numpy())
    dtype = of_numpy(name)
    return (
        None if dtype is None else np.asarray(tensor.view(getattr(torch, CARRIER[name])).numpy().view(dtype))
    )


def tensor_of(array: Array) -> Any:
    """Make a tensor that shares its memory with an array."""
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        array = np.array(array)
    name = array.dtype.name
    if name in CARRIER:
        return tensor_of(array.view(CARRIER[name])).view(getattr(torch, name))
    return torch.from_numpy(array) if array.ndim else torch.from_numpy(array.reshape(1)).view(())


def _name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def is_sparse(value: Any) -> bool:
    """Tell whether a value is a tensor that names the entries it has."""
    return isinstance(value, torch.Tensor) and value.layout in (torch.sparse_coo, *_COMPRESSED)


def values_of(tensor: Any) -> Any:
    """Give the entries of a sparse tensor: they are what moves, where they stand is fixed."""
    return (tensor.coalesce() if tensor.layout == torch.sparse_coo else tensor).values().clone()


def filled(tensor: Any, values: Any) -> Any:
    """Give a sparse tensor with other entries in the same places."""
    if tensor.layout == torch.sparse_coo:
        indices = tensor.detach().coalesce().indices()
        return torch.sparse_coo_tensor(indices, values, tensor.shape, is_coalesced=True)
    rows, columns = _COMPRESSED[tensor.layout]
    return torch.sparse_compressed_tensor(
        getattr(tensor, rows)(), getattr(tensor, columns)(), values, tensor.shape, layout=tensor.layout
    )
