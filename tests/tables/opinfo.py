"""PyTorch's table of its own operators: those with a gradient, at the samples that it tests them with."""

from __future__ import annotations

import functools
import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch about what its own tests would like to have
    from torch.testing._internal.common_methods_invocations import op_db

sys.path.append(str(pathlib.Path(__file__).parent))

import driver
from known_torch import KNOWN

LIMIT = 4096  # entries of a sample; larger ones are left out
BEYOND = "it reads memory beyond its argument, of which the checker makes a copy"
LEFT_OUT = {"as_strided/partial_views": BEYOND}


def has_gradient(op: Any) -> bool:
    """Tell whether PyTorch says that an operator has a gradient in float64."""
    return bool(op.supports_autograd and torch.float64 in op.supported_backward_dtypes("cpu"))


def named(op: Any) -> str:
    """Name an operator and its variant."""
    return f"{op.name}/{op.variant_test_name}".rstrip("/")


def entries(sample: Any) -> int:
    """Count the entries of a sample; nothing can be measured where an argument has none."""
    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    counts = [leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return sum(counts) if all(counts) else 0


def _differentiable(function: Any, sample: Any) -> Any:
    """Give what of the outputs PyTorch's own tests differentiate: not the free columns of a decomposition."""
    part = sample.output_process_fn_grad
    if part.__code__ is type(sample)(sample.input).output_process_fn_grad.__code__:  # all of it
        return function
    return functools.wraps(function)(lambda *args, **kwargs: part(function(*args, **kwargs)))


def samples(op: Any) -> Iterator[driver.Call]:
    """Give the small samples of an operator, or the first one where all are large."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    large = None
    given = False
    for sample in op.sample_inputs("cpu", torch.float64, requires_grad=True):
        size = entries(sample)
        call = driver.Call(_differentiable(op.op, sample), (sample.input, *sample.args), sample.kwargs)
        if 0 < size <= LIMIT:
            given = True
            with torch.random.fork_rng(devices=[]):  # what is done with a sample does not change the next
                yield call
        elif size and large is None:
            large = call
    if large is not None and not given:
        yield large


def table() -> driver.Table:
    """Give the table."""
    left_out = {named(op): "no gradient in float64" for op in op_db if not has_gradient(op)} | LEFT_OUT
    calls = {named(op): functools.partial(samples, op) for op in op_db if named(op) not in left_out}
    return driver.Table("PyTorch", torch.__version__, calls, KNOWN, left_out)
