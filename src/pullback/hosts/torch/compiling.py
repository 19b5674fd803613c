"""`torch.compile`: a rule is one call in the graph that Dynamo reads, and ordinary operations below it.

Dynamo does not look into the call. The stages after it do: they run the rule on stand-in tensors, forward and
backward, and see nothing but the operations of the body and of `grad`. So a compiled step has no trace of
pullback in it. What the rule reads beside its arguments is shown to Dynamo by readers
(`captures/guards.py`): it guards on that, and hands the tensors among it to the call (`twins.py`). Imported
while something is being compiled, and not before: Dynamo is slow to load.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

import torch
from torch.fx.node import base_types

from pullback.errors import HostError, PullbackError
from pullback.hosts.dynamo import Counter, modules_of
from pullback.hosts.torch import private
from pullback.hosts.torch.captures.guards import Guards
from pullback.hosts.torch.export import exporting
from pullback.hosts.torch.twins import Twins
from pullback.rule import Rule

_mark = private.in_one_call()


class Taken:
    """A rule as Dynamo takes it: its readers and its call, with the functions and objects it is given."""

    def __init__(self, function: Callable[..., Any], codes: Sequence[Any]) -> None:
        rule = getattr(function, "rule", None)
        self.where = rule.where if isinstance(rule, Rule) else function.__name__
        self._function = function
        self._codes = [_held(code) for code in codes if not isinstance(code, torch.nn.Module)]
        self._exported = exporting()
        self._asked = True  # by Dynamo: what does the call give?
        self._error: Exception | None = None
        self.readers: list[FunctionType] = []
        try:
            guards = Guards(function, codes, self.where)
            if self._exported and any(isinstance(v, torch.nn.Module) for v in [*codes, *guards.inputs]):
                raise self._no_place("a module that it takes or reads")
            self.readers = [_reader(*text) for text in guards.texts if any(text[1:])]
        except PullbackError as error:
            self._error = error
        self.refused = self._error is not None
        self.call = (torch.compiler.allow_in_graph if self._exported else _mark)(_as_function(self._run))
        self.failed = _constant(self._failed)

    @property
    def gone(self) -> bool:
        """Tell whether an object that belongs to it lives no more."""
        return any(code() is _GONE for code in self._codes)

    def serves(self, other: Taken) -> bool:
        """Tell whether a call can be this one again; from then on it is asked again, too."""
        same = self._error is None and other._error is None and self._key == other._key
        self._asked = self._asked or same
        return same

    @property
    def _key(self) -> list[Any]:
        cells = [[id(cell) for cell in reader.__closure__ or ()] for reader in self.readers]
        spaces = [id(reader.__globals__) for reader in self.readers if reader.__closure__ is None]
        codes = [id(code()) for code in self._codes]
        return [self._exported, codes, [reader.__code__ for reader in self.readers], cells, spaces]

    def _run(self, hidden: list[bool], args: list[Any], kwargs: dict[str, Any], inputs: list[Any]) -> Any:
        """Run the rule: what Dynamo takes for a single call."""
        if self._error is not None:  # there is nothing to run; PyTorch calls `eager` instead
            return []
        if not self._asked:
            return self._ran(hidden, args, kwargs, inputs)
        try:
            result = self._ran(hidden, args, kwargs, inputs)
            results = result if isinstance(result, (tuple, list)) else [result]
            if self._exported and not all(map(torch.is_tensor, results)):
                raise self._no_place(f"a {type(result).__name__} that it returns")
            _pull(result, [args, kwargs, inputs])
            return result
        except Exception as error:  # Dynamo would say no more than that there was one
            self._error = error.with_traceback(None)  # which would keep the tensors of the trace
            return []

    def _ran(self, hidden: list[bool], args: list[Any], kwargs: dict[str, Any], inputs: list[Any]) -> Any:
        codes = [code() for code in self._codes]
        rest = iter(codes)
        given = [next(rest) if hides else value for hides, value in zip(hidden, [*args, *kwargs.values()])]
        function = self._function
        modules = modules_of(given)
        if modules or inputs:
            twins = Twins(Guards(function, [*codes, *modules], self.where), inputs)
            given, function = [twins.inside(value) for value in given], twins.of(function)
        return function(*given[: len(args)], **dict(zip(kwargs, given[len(args) :])))

    def _no_place(self, found: str) -> HostError:
        return HostError.about(
            self.where,
            found=f"{found}, in a strict export",
            expected="tensors and numbers in, tensors out",
            why="PyTorch has no place in such a graph for anything else",
            fix="torch.export.export(model, args, strict=False)",
        )

    def _failed(self) -> bool:
        """Tell whether the call has failed, and say why to whoever wants a single graph."""
        self._asked = False
        if self._error is None:
            return False
        text = str(self._error)
        reason = (
            text if text.startswith(self.where) else f"{self.where}: {type(self._error).__name__}: {text}"
        )
        self.eager = private.left_out(self._function, reason)
        return True


def _pull(result: Any, given: Any) -> None:
    """Run `grad` too, if it will be asked for: an error of its own is then known in time."""
    leaves = private.pytree.tree_leaves
    outputs, sources = ([x for x in leaves(part) if _is_recorded(x)] for part in (result, given))
    if outputs and sources and torch.is_grad_enabled():
        ones = [torch.ones_like(output) for output in outputs]
        torch.autograd.grad(outputs, sources, ones, retain_graph=True, allow_unused=True)


def _is_recorded(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def is_data(kind: type) -> bool:
    """Tell whether values of a type can be handed to a compiled call: numbers, tensors, structures."""
    return issubclass(kind, _DATA) or kind in private.pytree.SUPPORTED_NODES


_DATA = (torch.Tensor, dict, list, tuple, *base_types)
_GONE = object()


def _held(value: Any) -> Callable[[], Any]:
    """Hold a function; do not keep an object alive."""
    if isinstance(value, (FunctionType, type)) or not hasattr(type(value), "__weakref__"):
        return lambda: value
    reference = weakref.ref(value)

    def get() -> Any:
        found = reference()
        return _GONE if found is None else found

    return get


def _as_function(method: Callable[..., Any]) -> Callable[..., Any]:
    """Give a method as a function: PyTorch marks nothing else."""

    def rule(*args: Any) -> Any:
        return method(*args)

    return rule


def _constant(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have Dynamo run a function instead of reading it."""

    def constant(*args: Any) -> Any:
        return function(*args)

    constant._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return constant


def _reader(function: FunctionType | None, lines: list[str], inputs: list[str]) -> FunctionType:
    """Write a function that reads what another one does, in the same cells and globals."""
    free = function.__code__.co_freevars if function is not None else ()
    text = "\n        ".join([*lines, f"return [{', '.join(inputs)}]"])
    head = "def reader(pb_given, pb_equal, pb_same, pb_len, pb_list, pb_has)"
    source = f"def outer({', '.join(free)}):\n    {head}:\n        {text}"
    outer = next(c for c in compile(source, "<reader>", "exec").co_consts if isinstance(c, CodeType))
    code = next(c for c in outer.co_consts if isinstance(c, CodeType))
    if function is None:
        return FunctionType(code, {"__builtins__": {}}, "reader")
    cells = dict(zip(free, function.__closure__ or ()))
    return FunctionType(
        code, function.__globals__, "reader", None, tuple(cells[name] for name in code.co_freevars)
    )


private.pytree.register_pytree_node(
    Counter, lambda counter: ([counter.variable], None), lambda parts, _: Counter(*parts)
)
