"""What is measured of PyTorch's tensors and nodes."""

from __future__ import annotations

from typing import Any

import torch

from pullback.graphs.parts import Flow


def array(tensor: Any) -> Any:
    value = tensor.detach()
    value = value.to_dense() if value.layout != torch.strided else value
    wide = torch.complex128 if value.is_complex() else torch.float64
    return value.resolve_conj().resolve_neg().to("cpu").to(wide).numpy()


def flow(tensor: Any) -> Flow | None:
    try:
        return Flow.of(array(tensor))
    except Exception:  # a tensor without storage, or of a kind that has no numbers
        return None


def kept(node: Any) -> int | None:
    """Count the bytes of the tensors that a node saved, each storage once."""
    try:
        saved = list(getattr(node, "saved_tensors", ()))
        for name in dir(node):
            if name.startswith("_saved_"):
                found = getattr(node, name)
                saved += found if isinstance(found, (list, tuple)) else [found]
        tensors = [t for t in saved if hasattr(t, "untyped_storage")]
        sizes = {int(t.data_ptr()): int(t.numel() * t.element_size()) for t in tensors}
    except (RuntimeError, NotImplementedError):  # they are freed, or have no memory of their own
        return None
    return sum(sizes.values())
