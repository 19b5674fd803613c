"""Functions that run again in PyTorch: `torch.utils.checkpoint`, not reentrant.

It restores the random numbers and autocast, and takes parameters, keywords and structures as they come. What
the second run writes into buffers, such as the running means of a normalization, is taken back. The
transforms of `torch.func` know no hooks on what is saved, and `torch.compile` chooses itself what is kept:
under them a function runs as it is.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from pullback.hosts.operation import Tensor
from pullback.hosts.torch import private, state
from pullback.plan import Plan
from pullback.recompute.chain import Chain
from pullback.recompute.framework import Body, Framework, Tensors, unrolled
from pullback.recompute.torch_undone import Undone


class Torch(Framework):
    """Run functions again under PyTorch's own checkpoints."""

    def checkpoint(self, plan: Plan, tensors: list[Tensor], *, looped: bool = False) -> Any:
        def run(*tensors: Tensor) -> Any:
            args, kwargs = plan.arguments(tensors)
            return plan.rule.body(*args, **kwargs)

        if private.transforming() or private.traced() or not torch.is_grad_enabled():
            return run(*tensors)
        # One by one: a checkpoint around this one lets go of tensors, and not of structures that hold them.
        return checkpoint(run, *tensors, use_reentrant=False, context_fn=_contexts)

    def scan(self, body: Body, carry: Tensors, xs: Tensors, length: int) -> tuple[Tensors, Tensors]:
        return unrolled(body, carry, [x.unbind() for x in xs], length, torch.stack)

    def reversible(self, plan: Plan, chain: Chain, tensors: Tensors) -> Tensors:
        if private.transforming() or private.traced() or not torch.is_grad_enabled():
            return list(chain.run(*tensors))
        return Undone(plan.host, chain).run(tensors)

    def split(self, x: Tensor, sizes: list[int]) -> Tensors:
        return list(torch.split(x, sizes))


class _Untouched:
    """Take back what a run writes into buffers; entered once for every time that a call is run again."""

    def __enter__(self) -> None:
        self._taking = state.put_back()
        self._taking.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._taking.__exit__(*raised)


def _contexts() -> Any:
    return contextlib.nullcontext(), _Untouched()


FRAMEWORK = Torch()
