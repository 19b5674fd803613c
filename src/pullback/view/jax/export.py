"""Does a function keep its gradient in an artifact of `jax.export`?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import export


def survives_export(run: Callable[..., Any], vjp: Callable[..., Any], sources: Sequence[Any]) -> bool:
    """Serialise a function with its gradient, read it again, and compare outputs and gradients."""
    try:
        exported = export.export(jax.jit(lambda *given: run(given)))(*sources)
        loaded = export.deserialize(exported.serialize(vjp_order=1))

        def again(given: Sequence[Any]) -> list[Any]:
            return list(loaded.call(*given))

        ours, theirs = run(sources), again(sources)
        pairs = [*zip(ours, theirs), *zip(vjp(run, sources, ours), vjp(again, sources, ours))]
        return len(ours) == len(theirs) and all(_same(a, b) for a, b in pairs)
    except Exception:  # what cannot be exported or read again is not exported, whatever the reason
        return False


def _same(ours: Any, theirs: Any) -> bool:
    a, b = (np.asarray(t).astype(np.complex128) for t in (ours, theirs))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-3, equal_nan=True))
