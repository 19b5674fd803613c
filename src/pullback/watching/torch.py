"""Gradients in PyTorch, as a log hears them.

In eager mode a hook of a tensor looks: of the output of a module itself, of a copy at a named place, because
a view that is changed in place loses its hooks. What `torch.func` transforms or `torch.compile` traces goes
through an operation of ours instead, which takes whole batches and is one call in the compiled program. On
the CPU NumPy is handed the array; elsewhere the numbers of a gradient are computed where it is, and brought
over later. Modules are not written to: one hook for all of them finds those that are looked at, so a module
that is copied or pickled in the block carries nothing away.
"""

from __future__ import annotations

import functools
import math
import warnings
import weakref
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook

from pullback.hosts.torch import private
from pullback.watching import watchpoints
from pullback.watching.framework import Framework, Looking
from pullback.watching.hearing import HEARING, note
from pullback.watching.record import BINS, SHIFT, WIDTH, numbers, scale_of, stride

# ── one row ──────────────────────────────────────────────────────────────────────────────────────────────


HANDS_OVER = True  # on the CPU: that is no copy, and a small gradient costs NumPy a fourth


def row(gradient: Any) -> Any:
    """Compute the numbers of a gradient, where it is."""
    with torch.no_grad():
        x = _elements(gradient)
        if HANDS_OVER and x.device.type == "cpu" and type(x) is torch.Tensor:
            return numbers(x.resolve_neg().numpy())
        made = torch.zeros(WIDTH, dtype=torch.float64, device=x.device)
        made[4] = x.numel()
        part = x[:: stride(x.numel())]
        if x.numel() and not _filled(made, x, part):
            made[5], made[6] = torch.isnan(x).sum(), torch.isinf(x).sum()
            x, part = x[torch.isfinite(x)], part[torch.isfinite(part)]
            if x.numel():
                _filled(made, x, part)
        return made


def _elements(gradient: Any) -> Any:
    """Give the numbers of a tensor of any kind, as a vector."""
    x = gradient.detach()
    if x.layout != torch.strided:
        x = x.coalesce().values() if x.layout == torch.sparse_coo else x.values()
    if x.is_complex():
        x = torch.view_as_real(x.resolve_conj())
    x = x.reshape(-1)
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _filled(made: Any, x: Any, part: Any) -> bool:
    """Fill in the numbers of elements, and of a part of them; False if they are not all finite."""
    least, largest = torch.aminmax(x)  # NaN goes through
    peak = float(torch.maximum(-least, largest))
    if not math.isfinite(peak):
        return False
    scale = scale_of(peak)
    scaled = x if scale == 1.0 else x / scale
    made[:4] = torch.stack((torch.dot(scaled, scaled), least, largest, scaled.mean()))
    made[0].sqrt_()
    made[0:4:3] *= scale
    made[7] = x.numel() - torch.count_nonzero(x.bool())  # twice as fast as of numbers
    sizes = part.abs().log10_().add_(SHIFT).clamp_(0, BINS - 1)  # a zero stands in the first bin
    made[8:] = torch.bincount(sizes.to(torch.int32), minlength=BINS)
    made[8] -= part.numel() - torch.count_nonzero(part)
    return True


def _read(made: Any) -> Any:
    return made.cpu().numpy() if isinstance(made, torch.Tensor) else made


def _look(gradient: Any, number: int) -> None:
    HEARING.heard(number, functools.partial(row, gradient), _read)


# ── operations, for what is transformed or compiled ──────────────────────────────────────────────────────

# `seen` is a copy to PyTorch, which a compiler takes out, and which may be changed in place. `look` writes to
# its second argument, as far as PyTorch knows: else a compiler would leave it out.
_library = torch.library.Library("pullback", "FRAGMENT")
_library.define("seen(Tensor x, Tensor written, int number) -> Tensor")
_library.define("look(Tensor gradient, Tensor(a!) written, int number) -> ()")
_WRITTEN = torch.zeros((), dtype=torch.int8)


class _Seen(private.SingleLevelFunction):
    """The identity, whose backward looks."""

    @staticmethod
    def forward(ctx: Any, x: Any, written: Any, number: int) -> Any:
        ctx.written, ctx.number = written, number
        return x.clone()

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        torch.ops.pullback.look(dy.detach(), ctx.written, ctx.number)
        return dy, None, None

    @staticmethod
    def jvp(ctx: Any, dx: Any, *_: Any) -> Any:
        return dx.clone()


def _differentiated(x: Any, written: Any, number: int) -> Any:
    with private.single_level():
        return _Seen.apply(x, written, number)  # type: ignore[attr-defined]


def _copied(x: Any, written: Any, number: int) -> Any:
    return x.clone()


def _run(gradient: Any, written: Any, number: int) -> None:
    with private.aside():
        _look(gradient, number)


_library.impl("seen", _differentiated, "Autograd")
_library.impl("seen", _copied, "CompositeExplicitAutograd")
_library.impl("look", _run, "CompositeExplicitAutograd")


@torch.library.register_fake("pullback::look", lib=_library)
def _fake(gradient: Any, written: Any, number: int) -> None:
    HEARING.pulled(number)


@torch.library.register_vmap("pullback::look", lib=_library)
def _look_batched(info: Any, axes: Any, gradient: Any, written: Any, number: int) -> tuple[None, None]:
    torch.ops.pullback.look(gradient, written, number)
    return None, None


@torch.library.register_vmap("pullback::seen", lib=_library)
def _seen_batched(info: Any, axes: Any, x: Any, written: Any, number: int) -> Any:
    return torch.ops.pullback.seen(x, written, number), axes[0]


def compiled(x: Any, name: str) -> Any:
    """Put a named watchpoint into a program that is compiled."""
    return _operation(x, watchpoints.number(name))


def _operation(x: Any, number: int) -> Any:
    if not (x.is_floating_point() or x.is_complex()):
        return x
    note(number)
    return torch.ops.pullback.seen(x, _WRITTEN, number)


HEARING.compiled = compiled


# ── modules ──────────────────────────────────────────────────────────────────────────────────────────────


_watched: dict[int, tuple[str, Any]] = {}  # a module → its path, and the model
_MESSAGE = r"Using `torch\.compile\(module\)` when there are global hooks"  # none of ours is run twice


class _Hook:
    """The one hook, which stays while a module is looked at."""

    handle: Any = None
    filtered: Any = None


def _after(module: Any, args: Any, output: Any) -> Any:
    found = _watched.get(id(module))
    if found is None or not HEARING.open:
        return None
    if found[1].module() is module and torch.compiler.is_compiling():
        return None  # the hook of a compiled module runs behind its program, and would be one of its own
    return _outputs(output, found[0], found[1])


def _outputs(output: Any, path: str, model: Any) -> Any:
    """Look at each tensor among the outputs of a module."""
    if isinstance(output, torch.Tensor):
        if torch.compiler.is_compiling():
            return _operation(output, model.number(path))
        return FRAMEWORK.output(output, model.number(path))
    if isinstance(output, (tuple, list)):
        parts = [_outputs(part, f"{path}[{i}]", model) for i, part in enumerate(output)]
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
    if type(output) is dict:
        return {key: _outputs(part, f"{path}[{key!r}]", model) for key, part in output.items()}
    return output


class _Model:
    """A module whose parts are looked at; `number` gives the watchpoints of their outputs."""

    def __init__(self, module: Any) -> None:
        def number(path: str) -> int:
            return watchpoints.number(path, "output", module)

        number._dynamo_marked_constant = True  # type: ignore[attr-defined]
        self.number = number
        self.module = weakref.ref(module)
        self.modules = {
            id(part): (path or type(part).__name__, self) for path, part in module.named_modules()
        }
        self.hooks, self.weights = [], []
        for path, weight in module.named_parameters():
            if weight.requires_grad:
                at = watchpoints.number(path, "weight", module)
                self.weights.append(at)
                self.hooks.append(weight.register_hook(functools.partial(_look, number=at)))
        _watched.update(self.modules)
        if _Hook.handle is None:
            _Hook.handle = register_module_forward_hook(_after)
            warnings.filterwarnings("ignore", message=_MESSAGE, category=UserWarning)
            _Hook.filtered = warnings.filters[0]

    def detach(self) -> None:
        """Look no more."""
        for hook in self.hooks:
            hook.remove()
        for part in self.modules:
            _watched.pop(part, None)
        if not _watched and _Hook.handle is not None:
            _Hook.handle.remove()
            _Hook.handle = None
            if _Hook.filtered in warnings.filters:
                warnings.filters.remove(_Hook.filtered)  # type: ignore[attr-defined]


class Torch(Framework):
    """Look by hooks, or by the operation."""

    def seen(self, x: Any, number: int) -> Any:
        if not HEARING.open:
            return x
        return self.output(x, number, x.clone)

    def output(self, x: Any, number: int, other: Any = None) -> Any:
        """Look at the gradient of a tensor, or of another one that has its value."""
        if private.transforming() or private.pushing():
            return _operation(x, number)
        if x.requires_grad and torch.is_grad_enabled():
            x = x if other is None else other()
            HEARING.ran(number)
            x.register_hook(functools.partial(_look, number=number))
        return x

    def look(self, gradient: Any, number: int) -> Any:
        if HEARING.open and (gradient.is_floating_point() or gradient.is_complex()):
            torch.ops.pullback.look(gradient.detach(), _WRITTEN, number)
        return gradient

    def attach(self, model: Any) -> Looking | None:
        if not isinstance(model, torch.nn.Module):
            return None
        made = _Model(model)
        return Looking(made.detach, made.weights)


FRAMEWORK = Torch()
