"""A module as an argument: its parameters are tensors of the call, by their names.

The body gets a module of the same class with those tensors in the places of the parameters, and everything
else shared with the one that was passed. Its cotangent is a dict by the names of parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

_WHOLE = "_pullback_whole"  # in a module that was put together of given tensors


def opened(module: torch.nn.Module) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Take a module apart into the dict of its parameters; one that stands twice in it is listed once.

    One that was put together again stays whole: its tensors are those of the call around it.
    """
    # `torch.func.functional_call` has put other parameters into the module, for the time of a call.
    now = snapshot(module)
    if _WHOLE in module.__dict__:
        return [{}], lambda parts: now
    parameters = dict(module.named_parameters())

    def build(parts: Sequence[Any]) -> torch.nn.Module:
        return _twin(now, {id(p): parts[0][name] for name, p in parameters.items()})

    return [parameters], build


# The `self` of a rule that is a method is not taken apart: its parameters are captured, as those of any
# object are, and answered for by `variables=`.
opened.leaves_self = True  # type: ignore[attr-defined]


def with_parameters(module: torch.nn.Module) -> torch.nn.Module:
    """Give a module that was put together of given tensors parameters of its own; any other as it is."""
    tensors = dict(module.named_parameters())
    if all(isinstance(tensor, torch.nn.Parameter) for tensor in tensors.values()):
        return module
    return _twin(module, {id(tensor): torch.nn.Parameter(tensor.detach()) for tensor in tensors.values()})


def snapshot(module: torch.nn.Module) -> torch.nn.Module:
    """Copy a module and those inside it, with the parameters and buffers that they have now."""
    return _twin(module)


def _twin(module: torch.nn.Module, tensors: dict[int, Any] | None = None) -> torch.nn.Module:
    """Copy a module and those inside it, with other tensors in the places of parameters, if there are any."""
    made: dict[int, torch.nn.Module] = {}
    others = tensors or {}

    def copied(part: Any) -> Any:
        if part is not None and id(part) not in made:
            made[id(part)] = twin = copy.copy(part)
            space = twin.__dict__
            if tensors is None:
                space["_buffers"] = dict(part._buffers)
            else:
                space[_WHOLE] = True
            # `register_parameter` would refuse a tensor that has a history, and a body asks `parameters()`.
            space["_parameters"] = {name: others.get(id(p), p) for name, p in part._parameters.items()}
            space["_modules"] = {name: copied(child) for name, child in part._modules.items()}
            for name, value in part.__dict__.items():
                if type(value) is list and any(isinstance(item, torch.Tensor) for item in value):
                    space[name] = [others.get(id(item), item) for item in value]  # as in a LSTM
        return None if part is None else made[id(part)]

    return copied(module)
