"""`torch.export`: an artifact holds the operations of a body, and no gradient of anybody's.

PyTorch drops the backward of a `torch.autograd.Function` in the same way. So there is a word about it, once
for each rule, and the checker looks whether a function keeps its gradient.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pullback.errors import HostError
from pullback.hosts.base import Operation

exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", bool)


def warn(operation: Operation) -> None:
    """Say that the gradient of a rule stays behind, if it is being exported."""
    if exporting():
        text = HostError.about(
            operation.where,
            found="torch.export keeps what it computes, and not its gradient",
            expected="a model that is not trained after it is exported",
            why="through what is exported no gradient flows to the inputs of the rule",
            fix="train the model first; export it under torch.no_grad() to say that this is meant",
        )
        warnings.warn(str(text), stacklevel=2)


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
