"""The transforms of `torch.func`, the levels of forward mode and the modes that a call stands in.

PyTorch does not export how to ask for them. Its private names stand here and nowhere else.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._C import _functorch
from torch._C._functorch import TransformType
from torch._functorch import eager_transforms, vmap
from torch._functorch.pyfunctorch import (
    retrieve_current_functorch_interpreter,
    temporarily_clear_interpreter_stack,
)
from torch._functorch.utils import enable_single_level_autograd_function
from torch._library.custom_ops import CustomOpDef
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from pullback.patched import Shared

__all__ = ["CustomOpDef", "TorchDispatchMode", "pytree"]

transforming: Callable[[], bool] = torch._C._are_functorch_transforms_active
alive = _functorch.unwrap_if_dead  # what a transform that is over has left wrapped
is_batched = _functorch.is_batchedtensor
versions_kept = torch.autograd._unsafe_preserve_version_counter
set_grad_enabled = torch._C._set_grad_enabled
autocasting: Callable[[], bool] = torch._C._is_any_autocast_enabled
jit_tracing: Callable[[], bool] = torch._C._is_tracing
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
# The level of forward mode, -1 outside of it. Every call asks: a partial one costs no frame.
level: Callable[[], int] = functools.partial(getattr, forward_ad, "_current_level")
pushes: Callable[[], bool] = torch._C._is_fwd_grad_enabled
# In PyTorch 2.6 nobody but an export sets this flag.
exporting: Callable[[], bool] = getattr(
    torch.compiler, "is_exporting", functools.partial(getattr, torch.compiler, "_is_compiling_flag", False)
)
without_tangents = functools.partial(forward_ad._set_fwd_grad_enabled, False)
single_level = enable_single_level_autograd_function
unbatched = _functorch._unwrap_batched
SingleLevelFunction = _SingleLevelFunction
below_autograd, AFTER_AUTOGRAD = torch._C._AutoDispatchBelowAutograd, torch._C._after_autograd_keyset


# ── what a transform wraps, and takes the wrapping off ───────────────────────────────────────────────────


class _Wrapping(threading.local):
    def __init__(self) -> None:
        self.told: list[Callable[[Any, Any], None]] = []


_wrapping = _Wrapping()


def _telling(native: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(native)
    def wrap(tensor: Any, *rest: Any) -> Any:
        made = native(tensor, *rest)
        for tell in _wrapping.told:
            tell(tensor, made)
        return made

    return wrap


def _shared(module: Any, *names: str) -> Shared:
    found = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return Shared(module, **{name: _telling(native) for name, native in found.items()})


_GRADS = ("_wrap_for_grad", "_unwrap_for_grad", "_wrap_functional_tensor", "_unwrap_functional_tensor")
_WRAPPERS = (_shared(eager_transforms, *_GRADS), _shared(vmap, "_add_batch_dim", "_remove_batch_dim"))


@contextlib.contextmanager
def wrapping(tell: Callable[[Any, Any], None]) -> Iterator[None]:
    """Tell what a transform that is opened here wraps, and what it makes of it; no mode hears of that."""
    with _WRAPPERS[0], _WRAPPERS[1]:
        _wrapping.told.append(tell)
        try:
            yield
        finally:
            _wrapping.told.remove(tell)


# ── modes and levels ─────────────────────────────────────────────────────────────────────────────────────

_KINDS = (torch.Tensor, torch.nn.Parameter)


class _Handed(threading.local):
    count = 0  # of the calls that were handed down through transforms


handed = _Handed()
_own = threading.local()  # how many of those who see operations are ours


def traced() -> bool:
    """Tell whether a compiler, or somebody else, sees operations."""
    return bool(dispatch_modes() > getattr(_own, "depth", 0))


def unseen(tensors: Sequence[Any]) -> bool:
    """Tell whether nobody looks at what is done with these tensors."""
    if transforming() or dispatch_modes() or level() >= 0:
        return False
    recorded = torch.is_grad_enabled()
    for tensor in tensors:
        if type(tensor) not in _KINDS or (recorded and tensor.requires_grad) or tensor.is_meta:
            return False
    return True


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Count one who sees operations as ours."""
    _own.depth = getattr(_own, "depth", 0) + 1
    try:
        yield
    finally:
        _own.depth -= 1


@contextlib.contextmanager
def not_jit_traced() -> Iterator[None]:
    """Let `torch.jit.trace` see nothing of what is done."""
    hand: Callable[[Any], None] = torch._C._set_tracing_state  # type: ignore[attr-defined]
    state = torch._C._get_tracing_state()
    hand(None)
    try:
        yield
    finally:
        hand(state)


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Give the sizes of a tensor; for `torch.jit.trace` they would be tensors themselves."""
    if not jit_tracing():
        return tuple(tensor.shape)
    with not_jit_traced():
        return tuple(tensor.shape)


def uncompiled() -> contextlib.AbstractContextManager[Any]:
    """Run compiled functions as they were written, so that their operations are effects."""
    if "torch._dynamo" not in sys.modules or traced() or torch.compiler.is_compiling():
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


def left_out(function: Callable[..., Any], reason: str) -> Callable[..., Any]:
    """Give a function that Dynamo leaves to eager mode, and says why; PyTorch 2.6 does not say it."""
    said = {"reason": reason} if "reason" in inspect.signature(torch.compiler.disable).parameters else {}
    return torch.compiler.disable(function, **said)


def in_one_call() -> Callable[..., Any]:
    """Give what has Dynamo take a function for one call, which later stages look into; slow to load."""
    import torch._dynamo

    return getattr(torch._dynamo, "nonstrict_trace", torch.compiler.allow_in_graph)


def batch(tensor: Any, level: int) -> Any:
    """Make the examples along the first axis those of a transform."""
    return _functorch._add_batch_dim(tensor, 0, level)


def functional(tensors: list[Any], level: int) -> list[Any]:
    """Put the wrapping of `functionalize` on."""
    return [_functorch._wrap_functional_tensor(tensor, level) for tensor in tensors]


def bare(tensors: list[Any]) -> list[Any]:
    """Take the wrapping of `functionalize` off; changes in place that are still to come are made first."""
    found = []
    for tensor in tensors:
        if torch._is_functional_tensor(tensor):
            torch._sync(tensor)
            tensor = _functorch._unwrap_functional_tensor(tensor, False)
        found.append(tensor)
    return found


GRAD, JVP, VMAP = TransformType.Grad, TransformType.Jvp, TransformType.Vmap
FUNCTIONALIZE = TransformType.Functionalize


def pushing() -> bool:
    """Tell whether tangents are being pushed forward."""
    return level() >= 0


def carrying(tensors: list[Any]) -> bool:
    """Tell whether any tensor carries a tangent that is being pushed."""
    return (
        pushing()
        and pushes()
        and any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)
    )


def innermost() -> Any:
    """Give the innermost transform; None when there is none."""
    return retrieve_current_functorch_interpreter() if transforming() else None


def lift(transform: Any, tensors: list[Any]) -> list[Any]:
    """Wrap tensors for a transform that differentiates, where they are not."""
    return [transform._cptr.lift(tensor) for tensor in tensors]


def unwrapped(tensors: list[Any], level: int) -> list[Any]:
    """Take the wrapping of one level off."""
    return [_functorch._unwrap_for_grad(tensor, level) for tensor in tensors]


def wrapped(tensors: list[Any], level: int) -> list[Any]:
    """Put the wrapping of one level on."""
    return [_functorch._wrap_for_grad(tensor, level) for tensor in tensors]


@contextlib.contextmanager
def below(transform: Any) -> Iterator[None]:
    """Run what the next transform outwards sees; a node of the graph has switched derivatives off."""
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), transform.lower():
        yield


@contextlib.contextmanager
def left() -> Iterator[None]:
    """Step out of every transform, and push no tangents."""
    with temporarily_clear_interpreter_stack(), without_tangents():
        yield


def is_followed(tensor: Any) -> bool:
    """Tell whether anybody differentiates a tensor, at any level."""
    while True:
        if tensor.requires_grad or (pushing() and forward_ad.unpack_dual(tensor).tangent is not None):
            return True
        if not _functorch.is_functorch_wrapped_tensor(tensor):
            return False
        tensor = _functorch.get_unwrapped(tensor)


def is_wrapped(tensor: Any) -> bool:
    """Tell whether a tensor belongs to a transform."""
    return bool(_functorch.is_functorch_wrapped_tensor(tensor))


def peeled(tensor: Any) -> tuple[Any, list[int]]:
    """Take off what transforms have wrapped around a tensor: what is inside, and the axes of batches."""
    axes: list[int] = []
    while is_wrapped(tensor):
        axis = _functorch.maybe_get_bdim(tensor)
        if axis >= 0:
            axes.append(axis)
        tensor = _functorch.get_unwrapped(tensor)
    return tensor, axes


def is_hollow(tensor: Any) -> bool:
    """Tell whether a tensor may hold nothing, or its data elsewhere: a fake, functional or sharded one."""
    own = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    return bool(own or tensor.is_meta or torch._is_functional_tensor(tensor))


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Let no transformation, mode or subclass of the program see what is done."""
    with (
        torch._C._DisableFuncTorch(),
        torch._C._DisableTorchDispatch(),
        torch._C.DisableTorchFunctionSubclass(),
        torch.no_grad(),
    ):
        yield


def ungraded(tensor: Any) -> Any:
    """Take off what transforms that differentiate have put around a tensor."""
    while _functorch.is_gradtrackingtensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def has_values(tensor: Any) -> bool:
    """Tell whether the numbers in a tensor can be looked at."""
    return not (is_wrapped(tensor) or tensor.is_meta or traced())


def tracing_backend() -> Any:
    """Give a backend of `torch.compile` that traces forward and backward, and runs them as they are.

    The default one needs a toolchain. `aot_eager` is this with a partition for which PyTorch loads its whole
    compiler.
    """
    from functorch.compile import default_partition, make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def run(graph: Any, inputs: Any) -> Any:
        return make_boxed_func(graph.forward)

    return aot_autograd(fw_compiler=run, partition_fn=default_partition)
