"""Running a foreign function in PyTorch.

Plain tensors in eager mode are handed to Python directly. Everything else goes through one operator of ours,
`pullback::foreign`: it has a fake for `torch.compile`, a batch for `vmap`, and a derivative that refuses.
The operator takes numbers only, so that it can stand in a compiled program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch.autograd import forward_ad

from pullback.dtypes import CARRIER, TABLE
from pullback.hosts.foreign import Foreign, register, registered
from pullback.hosts.numpy import callback as on_arrays
from pullback.hosts.numpy.callback import Maps
from pullback.hosts.specs import Spec
from pullback.hosts.torch import private
from pullback.hosts.torch.arrays import DTYPES

_UNKNOWN = -1  # the length of an axis, until it has run
_PACKED = {name: dtype for name, dtype in DTYPES.items() if name in CARRIER}
_BITS = {dtype: DTYPES[CARRIER[name]] for name, dtype in _PACKED.items()}
_NAMES = [name for name in DTYPES if name in CARRIER or TABLE[name].computes]
_DTYPES = [DTYPES[name] for name in _NAMES]


def callback(foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
    """Run a foreign function on tensors."""
    tensors = list(tensors)
    if not torch.compiler.is_compiling() and private.unseen(tensors):
        return _run(foreign, tensors, outputs, ())
    lengths = [_UNKNOWN if n is None else n for spec in outputs for n in spec.shape or ()]
    ranks = [len(spec.shape or ()) for spec in outputs]
    dtypes = [_code(spec.dtype) for spec in outputs]
    return list(torch.ops.pullback.foreign(tensors, _token(foreign), [], lengths, ranks, dtypes))


def _token(foreign: Foreign) -> int:
    if not hasattr(foreign, "token"):
        foreign.token = register(foreign)
    return foreign.token


# ── arrays ───────────────────────────────────────────────────────────────────────────────────────────────


def _run(foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec], maps: Maps) -> list[Any]:
    results = on_arrays.run(foreign, [_array(tensor) for tensor in tensors], outputs, maps)
    on_arrays.own(results)
    made = [_tensor(result, spec) for result, spec in zip(results, outputs)]
    device = _device(tensors)
    return made if device is None else [tensor.to(device) for tensor in made]


def _device(tensors: Sequence[Any]) -> Any:
    """Find where results belong: with the first tensor that is not the CPU's; None if all are."""
    return next((tensor.device for tensor in tensors if not tensor.is_cpu), None)


def _code(name: str) -> int:
    """Number a dtype."""
    if name not in _NAMES:
        raise on_arrays.no_dtype(name)
    return _NAMES.index(name)


def _array(tensor: Any) -> Any:
    """Give a read-only view of a tensor's memory; a copy of what is not the CPU's."""
    tensor = tensor.detach()
    bits = _BITS.get(tensor.dtype)
    if bits is not None:
        name = str(tensor.dtype).removeprefix("torch.")
        return on_arrays.read_only(tensor.view(bits).numpy(force=True).view(on_arrays.dtype(name)))
    if tensor.dtype not in _DTYPES:
        raise on_arrays.no_dtype(str(tensor.dtype).removeprefix("torch."))
    return on_arrays.read_only(tensor.numpy(force=True))


def _tensor(array: Any, spec: Spec) -> Any:
    """Make a tensor of an array's memory."""
    dtype = _PACKED.get(spec.dtype)
    if dtype is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(CARRIER[spec.dtype])).view(dtype)


# ── the operator ─────────────────────────────────────────────────────────────────────────────────────────

_library = torch.library.Library("pullback", "DEF")
_library.define(
    "foreign(Tensor[] tensors, int token, int[] maps, SymInt[] lengths, int[] ranks, int[] dtypes)"
    " -> Tensor[]"
)
_pinned: dict[int, Foreign] = {}  # those that stand in compiled programs, which name them and nothing more


def _specs(lengths: Sequence[Any], ranks: Sequence[int], dtypes: Sequence[int]) -> list[Spec]:
    rest = [None if isinstance(n, int) and n == _UNKNOWN else n for n in lengths]
    specs = []
    for rank, code in zip(ranks, dtypes):
        shape, rest = tuple(rest[:rank]), rest[rank:]
        specs.append(Spec(shape, _NAMES[code], "other"))
    return specs


def _maps(flat: Sequence[int], count: int) -> Maps:
    """Read the maps: a number for each tensor in each of them."""
    return tuple(tuple(map(bool, flat[i : i + count])) for i in range(0, len(flat), count)) if count else ()


@torch.library.impl(_library, "foreign", "CompositeExplicitAutograd")
def _concrete(
    tensors: Any, token: int, flat: Sequence[int], lengths: Any, ranks: Sequence[int], dtypes: Sequence[int]
) -> list[Any]:
    return _run(registered(token), tensors, _specs(lengths, ranks, dtypes), _maps(flat, len(tensors)))


@torch.library.register_fake("pullback::foreign", lib=_library)
def _fake(
    tensors: Any, token: int, flat: Sequence[int], lengths: Any, ranks: Sequence[int], dtypes: Sequence[int]
) -> list[Any]:
    """Make what `torch.compile` traces with: shapes and dtypes, no numbers."""
    _pinned[int(token)] = registered(int(token))
    device = _device(tensors)
    batch = on_arrays.lengths([tensor.shape for tensor in tensors], _maps(flat, len(tensors)))
    made = []
    for spec, code in zip(_specs(lengths, ranks, dtypes), dtypes):
        shape = [torch.library.get_ctx().new_dynamic_size() if n is None else n for n in spec.shape or ()]
        made.append(torch.empty([*batch, *shape], dtype=_DTYPES[code], device=device))
    return made


@torch.library.register_vmap("pullback::foreign", lib=_library)
def _batched(info: Any, in_dims: Any, tensors: Any, token: int, flat: Sequence[int], *rest: Any) -> Any:
    """Make one call of a batch: its axis goes in front, outside those of maps further in."""
    axes = in_dims[0]
    moved = [t if axis is None else t.movedim(axis, 0) for t, axis in zip(tensors, axes)]
    results = torch.ops.pullback.foreign(
        moved, token, [*(int(axis is not None) for axis in axes), *flat], *rest
    )
    return results, [0] * len(results)


# ── derivatives ──────────────────────────────────────────────────────────────────────────────────────────


class _Refused(private.SingleLevelFunction):
    """A foreign function that somebody may differentiate: the values are right, a derivative is refused."""

    @staticmethod
    def forward(ctx: Any, keys: Any, rest: Any, *tensors: Any) -> Any:
        ctx.foreign = registered(rest[0])
        return tuple(_below(keys, tensors, rest))

    @staticmethod
    def backward(ctx: Any, *_: Any) -> NoReturn:
        raise on_arrays.not_differentiable(ctx.foreign)


def _autograd(keys: Any, tensors: Any, *rest: Any) -> list[Any]:
    if private.pushing() and any(forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise on_arrays.not_differentiable(registered(rest[0]))
    if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors):
        return list(_below(keys, tensors, rest))
    with private.single_level():
        return list(_Refused.apply(keys, rest, *tensors))  # type: ignore[attr-defined]


def _below(keys: Any, tensors: Sequence[Any], rest: Any) -> Any:
    with private.below_autograd():
        behind = keys & private.AFTER_AUTOGRAD
        return torch.ops.pullback.foreign.default.redispatch(behind, list(tensors), *rest)


_library.impl("foreign", _autograd, "Autograd", with_keyset=True)
