"""What `torch.compile` makes of a function, as far as a rule can get it wrong: the tracing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Function = Callable[..., Any]


def traced(function: Function) -> Function:
    """Compile a function: forward and backward are traced, and run as they are.

    The default backend needs a toolchain. `aot_eager` is this one with a partition for which PyTorch loads
    its whole compiler.
    """
    from functorch.compile import default_partition, make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def run(graph: Any, inputs: Sequence[Any]) -> Any:
        return make_boxed_func(graph.forward)

    # Copied inside: what works in place on an input of the compiled program is not differentiated.
    def copied(*args: Any, **kwargs: Any) -> Any:
        return function(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args], **kwargs)

    compiled: Function = torch.compile(
        copied, backend=aot_autograd(fw_compiler=run, partition_fn=default_partition)
    )
    return compiled
