"""A rule as an operator of `torch.library`: what `torch.export` keeps whole, and trains.

The operator runs the function unrecorded. Its fake implementation runs it on fake tensors, which have shapes
and no values. Its backward runs it again from its inputs, recorded, and differentiates that by its rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pullback.errors import DefinitionError, ExternalError, OutputError
from pullback.hosts.torch import surroundings

_SCHEMA = {torch.Tensor: "Tensor", bool: "bool", int: "SymInt", float: "float", str: "str"}
_BY_NAME = {kind.__name__: word for kind, word in _SCHEMA.items()} | {"torch.Tensor": "Tensor"}


def operator(function: Callable[..., Any], name: str, outputs: int, example: Any, where: str) -> Any:
    """Register a function under a name of `torch.library`."""
    parameters = list(inspect.signature(function).parameters.values())
    kinds = [_kind(parameter, example, where) for parameter in parameters]
    if "Tensor" not in kinds:
        raise DefinitionError.about(
            where, found="no argument is a tensor", expected="an operator of tensors", fix="x: torch.Tensor"
        )
    schema = ", ".join(map(_declared, kinds, parameters))

    def run(args: Sequence[Any]) -> list[Any]:
        bound = list(zip(parameters, args))  # what PyTorch leaves out has its default
        by_name = {p.name: value for p, value in bound if p.kind is p.KEYWORD_ONLY}
        results = function(*(value for p, value in bound if p.kind is not p.KEYWORD_ONLY), **by_name)
        return _tensors(results, outputs, where)

    def value(*args: Any) -> Any:
        before = surroundings.states()
        with torch.no_grad():
            results = _apart(run(args), args)
        if surroundings.moved(before):
            raise ExternalError.about(
                where,
                found="the body draws random numbers, and the gradient of an operator runs it again",
                expected="the same numbers in both runs",
                fix="draw the noise outside and pass it as an argument",
            )
        return results[0] if outputs == 1 else tuple(results)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.statics = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))
        ctx.set_materialize_grads(False)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        needed = ctx.needs_input_grad
        recorded = torch.is_grad_enabled()
        args, wanted = list(ctx.statics), []
        with torch.enable_grad():
            for i, kind in enumerate(kinds):
                if kind == "Tensor":
                    tensor = next(saved)
                    args[i] = tensor.view_as(tensor) if recorded else tensor.detach()
                    if needed[i]:
                        args[i] = args[i] if recorded else args[i].requires_grad_()
                        wanted.append(i)
            pairs = [(y, dy) for y, dy in zip(run(args), cotangents) if dy is not None and y.requires_grad]
        results: list[Any] = [None] * len(kinds)
        if pairs:
            outputs, given = zip(*pairs)
            sources = [args[i] for i in wanted]
            found = torch.autograd.grad(outputs, sources, given, create_graph=recorded, allow_unused=True)
            for i, cotangent in zip(wanted, found):
                results[i] = cotangent
        return tuple(results)

    returned = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    made = torch.library.custom_op(name, value, mutates_args=(), schema=f"({schema}) -> {returned}")
    made.register_fake(value)
    made.register_autograd(backward, setup_context=setup_context)
    return made


def _kind(parameter: inspect.Parameter, example: Any, where: str) -> str:
    """Give the type of an argument in a schema: by its annotation, its default, or the example."""
    written = parameter.annotation
    known = _SCHEMA.get(written) if isinstance(written, type) else _BY_NAME.get(written)
    if known is not None:
        return known
    value = example.get(parameter.name, parameter.default)
    found = type(value)
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or not (
        value is parameter.empty or found in _SCHEMA or hasattr(value, "__array__")
    ):
        raise DefinitionError.about(
            where,
            found=f"the argument `{parameter}`",
            expected="tensors, numbers, bools and strings, one by one: what an operator can take",
            fix=f"{parameter.name}: torch.Tensor",
        )
    return _SCHEMA.get(found, "Tensor")


def _declared(kind: str, parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is parameter.empty:
        return f"{kind} {parameter.name}"
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{kind} {parameter.name}={shown}"


def _tensors(results: Any, outputs: int, where: str) -> list[Any]:
    found = list(results) if isinstance(results, (tuple, list)) else [results]
    if len(found) != outputs or not all(isinstance(result, torch.Tensor) for result in found):
        kinds = ", ".join(type(result).__name__ for result in found)
        raise OutputError.about(
            where,
            found=f"it returned: {kinds}",
            expected=f"{outputs} tensor{'' if outputs == 1 else 's'}, as its operator declares",
            fix=f"pb.operator(f, name, outputs={len(found)})",
        )
    return found


def _apart(results: list[Any], args: Sequence[Any]) -> list[Any]:
    """Copy what an operator may not return: memory of its arguments, or the same memory twice."""
    taken = {arg.untyped_storage()._cdata for arg in args if isinstance(arg, torch.Tensor)}
    fresh = []
    for result in results:
        storage = result.untyped_storage()._cdata
        fresh.append(result.clone() if storage in taken else result)
        taken.add(storage)
    return fresh
