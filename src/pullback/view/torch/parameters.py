"""Parameters that a rule reads beside its arguments: they are inputs of a check, too.

They are set before a call, and put back when the check leaves the framework. `grad` reads them by their names
when the call has ended, and what `torch.func.functional_call` puts into a module is gone by then.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pullback.errors import CapturedTensorError, PullbackError
from pullback.hosts.keras import numbered
from pullback.hosts.torch import modules, private
from pullback.hosts.torch.nodes import behind
from pullback.rule import Rule, reach
from pullback.view.arguments import Arguments, Asked
from pullback.view.torch.words import DATA


def bound(function: Any, args: tuple[Any, ...], asked: Asked) -> tuple[Any, tuple[Any, ...], Asked]:
    """Bind a rule that is a method to its module: what it reads through `self` is captured."""
    rule = getattr(function, "rule", None)
    is_method = isinstance(rule, Rule) and next(iter(rule.signature.parameters), "") == "self"
    if not is_method or hasattr(function, "__self__") or not args or not isinstance(args[0], torch.nn.Module):
        return function, args, asked
    module, built = modules.with_parameters(args[0]), asked.built
    if built is not None:
        asked = dataclasses.replace(asked, built=lambda rest: built([module, *rest])[1:])
    return function.__get__(module), args[1:], asked


@dataclasses.dataclass(frozen=True)
class Read:
    """Parameters by name, which take other values for a time; and buffers, which a call may change."""

    parameters: dict[str, Any] = dataclasses.field(default_factory=dict)
    buffers: Sequence[Any] = ()
    owner: str | None = None  # by which attribute of the callable it reaches them; None: by their names

    def set(self, values: Sequence[Any]) -> list[Any]:
        """Give the parameters these values, of any dtype."""
        found = list(self.parameters.values())
        for parameter, value in zip(found, values):
            parameter.data = value
        return found

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Give everything back the values that it had: the program goes on with them."""
        before = [p.data for p in self.parameters.values()]
        changed = [buffer.clone() for buffer in self.buffers]
        try:
            yield
        finally:
            self.set(before)
            with torch.no_grad():
                for buffer, value in zip(self.buffers, changed):
                    buffer.copy_(value)

    def written(self, name: str) -> list[str]:
        """Write as code what sets each one, for a callable of this name."""
        start = "" if self.owner is None else f"{name}.{self.owner}"
        return [f"{start}{path.removeprefix('self.')}{DATA}" for path in self.parameters]


def read_by(function: Any, given: Arguments, parts: Sequence[Any]) -> Read:
    """Find the parameters that a rule reads and was not handed; `parts` are what the user wrote of it.

    Those of a module are handed over, unless a rule inside refuses other tensors in their places.
    """
    module: Any
    if isinstance(function, torch.nn.Module):
        if any(map(torch.nn.parameter.is_lazy, function.parameters())):
            with torch.no_grad():  # a lazy module learns its shapes from a call
                function(*given.args, **given.kwargs)
        if not _refuses_others(function, given):
            return Read()
        module, label, owner = function, "", ""
    elif not parts:
        return Read()
    else:
        module, label, owner = getattr(function, "__self__", None), "self.", "__self__."
    is_own = isinstance(module, torch.nn.Module)
    names = {id(value): name for part in parts for name, value in reach(part)}
    names |= {id(p): f"{label}{name}" for name, p in module.named_parameters()} if is_own else {}
    handed = {id(leaf) for leaf in given.leaves}
    buffers = list(module.buffers()) if is_own else []
    with Read(buffers=buffers).kept():
        found = [p for p in _read(function, given) if id(p) not in handed]
    named = numbered([names.get(id(p), "parameter") for p in found])
    return Read(dict(zip(named, found)), buffers, owner if is_own else None)


def _read(function: Any, given: Arguments) -> list[Any]:
    """List the parameters that are behind the outputs of a call."""
    try:
        with torch.enable_grad():
            outputs = private.pytree.tree_leaves(function(*given.args, **given.kwargs))
    except PullbackError:  # the first probe says it
        return []
    nodes = behind([output for output in outputs if isinstance(output, torch.Tensor)])
    met = [node.variable for node in nodes if hasattr(node, "variable")]
    return [tensor for tensor in met if isinstance(tensor, torch.nn.Parameter)]


def _refuses_others(module: torch.nn.Module, given: Arguments) -> bool:
    """Tell whether a rule inside a module refuses other tensors in the places of its parameters."""
    values = {n: p.detach().clone().requires_grad_(p.requires_grad) for n, p in module.named_parameters()}
    values |= {name: buffer.clone() for name, buffer in module.named_buffers()}
    try:
        torch.func.functional_call(module, values, given.args, given.kwargs)
    except Exception as error:  # of any other the first probe speaks
        return isinstance(error, CapturedTensorError)
    return False
