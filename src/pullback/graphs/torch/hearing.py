"""Hearing what a function of PyTorch calls: operations, modules and rules, as they run.

A function mode hears every call of PyTorch's functions; a call is known by the numbers that autograd gives to
the nodes made in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.overrides import TorchFunctionMode

from pullback import tree
from pullback.graphs.framework import Asked, Marked, heard, location_in, location_now, sentence
from pullback.hosts.torch import private
from pullback.rule import reach, written
from pullback.view.torch import native

LEAVES = {"item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__array__", "__index__"}
# what tells of a tensor, and computes nothing
QUIET = {"size", "dim", "is_floating_point", "requires_grad_", "stride", "numel", "nelement", "is_complex"}
# what reads the shape of a tensor alone
SHAPES = {f"{name}_like" for name in ("ones", "zeros", "empty", "full", "rand", "randn", "randint")}
SHAPES |= {f"new_{name}" for name in ("ones", "zeros", "empty", "full", "empty_strided")}
QUIET |= {"element_size", "register_hook", "backward", "__len__", "__hash__", "__repr__", "__format__"}


@dataclass
class Call:
    """A call that was heard: its tensors, and the numbers of the nodes that it made."""

    name: str
    tensors: list[Any]
    outputs: list[Any]
    start: int
    stop: int
    scope: tuple[str, ...]
    location: str
    rule: Marked | None = None
    captured: list[Any] = field(default_factory=list)


class Hearing:
    """Hold the calls of one run, in their order."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.calls: list[Call] = []
        self.inner: list[Call] = []  # inside the forward of a rule
        self.names: dict[int, str] = {}  # of parameters, modules and tensors that the function names, by id
        self.scope: list[str] = []

    def named(self, function: Any) -> None:
        """Know the names of the parameters of a module, or of those that a function names."""
        found: list[tuple[str, Any]]
        found = [("", function)] if isinstance(function, torch.nn.Module) else list(reach(written(function)))
        found.append(("", getattr(function, "__self__", None)))
        for name, value in found:
            if isinstance(value, torch.nn.Module):
                prefix = f"{name}." if name else ""
                for path, parameter in value.named_parameters():
                    self.names.setdefault(id(parameter), prefix + path)
                for path, module in value.named_modules():
                    self.names.setdefault(id(module), path or name or type(value).__name__)
            elif isinstance(value, torch.Tensor):
                self.names.setdefault(id(value), name)

    def called_as(self, tensor: Any) -> str:
        """Name a tensor as the function does, or else by what it is."""
        what = "a parameter" if isinstance(tensor, torch.nn.Parameter) else "a tensor"
        return self.names.get(id(tensor)) or f"{what} {tuple(tensor.shape)}"

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Hear the calls, the modules and the rules."""
        hearing, number = self, _numbers()

        class Mode(TorchFunctionMode):
            def __torch_function__(
                self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
            ) -> Any:
                start = number()
                result = func(*args, **(kwargs or {}))
                hearing.called(func, [args, dict(kwargs or {})], result, start, number())
                return result

        def enter(module: Any, args: Any) -> None:
            path = self.names.get(id(module), type(module).__name__)
            last = path.rpartition(".")[2] if self.scope else path
            self.scope.append(f"{last} {type(module).__name__}" if last.isdigit() else last)

        def leave(module: Any, args: Any, result: Any) -> None:
            self.scope.pop()

        def ruled(name: str, mark: Marked, given: Any) -> None:
            self.ruled(name, mark, given, number())

        with contextlib.ExitStack() as stack:
            stack.enter_context(heard(native, ruled))
            stack.callback(modules.register_module_forward_pre_hook(enter).remove)
            stack.callback(modules.register_module_forward_hook(leave, always_call=True).remove)
            stack.enter_context(Mode())
            yield

    def called(self, func: Any, given: Any, result: Any, start: int, stop: int) -> None:
        """Note a call of PyTorch."""
        name = str(getattr(func, "__name__", "call"))
        if name == "__get__":
            name = str(getattr(getattr(func, "__self__", None), "__name__", name))
            if name != "data":
                return
        if name in QUIET:
            return
        if private.transforming():  # what a transform wraps is not what autograd knows
            return
        read = () if name in SHAPES else given
        tensors = [leaf for leaf in tree.flatten(read)[0] if isinstance(leaf, torch.Tensor)]
        outputs = [leaf for leaf in tree.flatten(result)[0] if isinstance(leaf, torch.Tensor)]
        call = Call(name, tensors, outputs, start, stop, tuple(self.scope), location_now())
        within = self.calls[-1] if self.calls else None
        if within is not None and within.rule is not None and not torch.is_grad_enabled():
            within.captured += tensors  # the forward of a rule runs unrecorded
            within.outputs += outputs  # what leaves it without a history is its own
            self.inner.append(call)
        else:
            self.calls.append(call)

    def ruled(self, name: str, mark: Marked, given: Any, start: int) -> None:
        """Note a call of a rule: its node is the next one."""
        tensors = [leaf for leaf in tree.flatten(given)[0] if isinstance(leaf, torch.Tensor)]
        self.calls.append(Call(name, tensors, [], start, start + 2, tuple(self.scope), location_now(), mark))

    def untraced(self, error: Exception, inputs: Sequence[Any]) -> str:
        """Note that the function ended early: what it did until then is drawn."""
        left = "numpy" in str(error)
        last = self.calls[-1].outputs if self.calls else list(inputs)
        self.calls.append(Call("numpy" if left else "error", list(last), [], 0, 0, (), location_in(error)))
        return f"{self.asked.name} cannot be run: {sentence(error)}"


def _numbers() -> Callable[[], int]:
    """Give what tells the number of the next node."""
    anchor = torch.zeros((), requires_grad=True)

    last = 0

    def number() -> int:
        nonlocal last
        with torch.enable_grad():
            found: Any = anchor.view_as(anchor).grad_fn
        last = last if found is None else int(found._sequence_nr())  # a transform numbers its own
        return last

    return number
