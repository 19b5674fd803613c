"""Do a function and its gradient survive an export? What is loaded again is compared with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.view.subject import Array


def survives_export(adapter: Any) -> bool:
    """Save the function of an adapter, load it again, and compare outputs and gradients."""
    if adapter.opaque():
        return False  # a Python callback is found again in this process, and in no other
    try:
        with adapter.surroundings():
            run, again, sources = adapter.exported()
            ours, theirs = _values(adapter, run, sources), _values(adapter, again, sources)
    except Exception:  # what cannot be saved or loaded is not exported, whatever the reason
        return False
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _values(adapter: Any, run: Callable[..., Any], sources: Sequence[Any]) -> list[Array | None]:
    return [None if value is None else adapter.array(value) for value in adapter.values(run, sources)]


def _same(ours: Array | None, theirs: Array | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    a, b = (array.astype(np.complex128) for array in (ours, theirs))
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-3, equal_nan=True)
