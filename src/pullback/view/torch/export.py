"""Whether a function and its gradient survive `torch.export`."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch


class _Module(torch.nn.Module):
    """Hold a flat function as a module: `torch.export` takes nothing else."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *sources: Any) -> tuple[Any, ...]:
        return tuple(self.run(sources))


def survives_export(run: Callable[..., Any], vjp: Callable[..., Any], sources: Sequence[Any]) -> bool:
    """Save a function, load it again, and compare outputs and gradients."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the answer says it
            exported = torch.export.export(_Module(run), tuple(sources), strict=False)
        file = io.BytesIO()
        torch.export.save(exported, file)
        file.seek(0)
        loaded = torch.export.load(file).module()

        def again(given: Sequence[Any]) -> list[Any]:
            return list(loaded(*given))

        ours, theirs = run(sources), again(sources)
        given = [torch.ones_like(o) for o in ours]
        pairs = [*zip(ours, theirs), *zip(vjp(run, sources, given), vjp(again, sources, given))]
        return len(ours) == len(theirs) and all(_same(a, b) for a, b in pairs)
    except Exception:  # what cannot be saved or loaded is not exported, whatever the reason
        return False


def _same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    a, b = (t.detach().to(torch.complex128) for t in (ours, theirs))
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, equal_nan=True)
