"""Overriding gradients: finding the operations of a kind while they run.

PyTorch tells a function mode of every function that is called, before it runs. One of a kind runs as an
operation of ours, whose pullback is the gradient that was given. Modules are found where they are called:
one of a kind runs cut off from its inputs, and the gradient that was given leads back to them. A function of
PyTorch that is written in Python and calls others tells of itself only.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pullback.hosts import dynamo
from pullback.hosts.dynamo import Opaque, called_whole, is_tracing
from pullback.hosts.keras import is_layer, layers_called_by, run_on
from pullback.hosts.operation import Cotangents, Derived, Pullback, Rerun, filled
from pullback.hosts.overrides import Gradients, class_of, kind_of
from pullback.hosts.torch import kinds
from pullback.patched import patched
from pullback.tree import put


class Overriding(TorchFunctionMode):
    """A context in which operations and modules have other gradients."""

    def __init__(self, gradients: Gradients, *, strict: bool) -> None:
        super().__init__()
        self.strict = strict  # judge by itself whether every kind was met
        self.gradients = gradients
        self.operations, self.modules = kinds.sort(gradients.by_kind)
        self.replaced = {kinds.name(kind): 0 for kind in gradients.by_kind}
        self.seen: Counter[str] = Counter()
        self.busy = False  # at a place: what runs there is no place of its own
        self._thread = threading.get_ident()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Overriding:
        self.replaced = dict.fromkeys(self.replaced, 0)
        self.seen.clear()
        self._thread = threading.get_ident()
        call = asking(self, torch.nn.Module.__call__)
        self._stack.enter_context(patched(torch.nn.Module, __call__=call))
        if run_on("torch"):
            self._stack.enter_context(layers_called_by(self.module_gradient, self.gradients.wrap))
        super().__enter__()
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._stack.close()
        super().__exit__(kind, *rest)
        if kind is None and self.strict:
            self.gradients.check(self.replaced, list(self.seen), "override")

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.busy:
            return func(*args, **kwargs)
        found = kinds.operation(func)
        if found in ("get", "set"):  # an attribute
            return func(*args, **kwargs)
        self.seen[found] += 1
        kind = self.operations.get(found)
        if kind is None:
            if found.removesuffix("_") in self.operations:
                raise kinds.in_place(found)
            return func(*args, **kwargs)
        if kwargs.get("inplace"):
            raise kinds.in_place(found)
        return self._replace(found, kind, func, args, kwargs)

    def _replace(self, found: str, kind: Any, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation of a kind with its own gradient."""
        call = _Call(self, func, args, kwargs)
        if not call.inputs:
            return func(*args, **kwargs)
        self.replaced[kinds.name(kind)] += 1
        names = kinds.input_names(func, len(call.inputs))
        gradient = self.gradients.by_kind[kind]
        call.occurrence = self.gradients.make(found, names, call.inputs, gradient, call.options)
        operation = _Running(call)
        outputs = operation.host.apply(operation, list(call.inputs))
        call.inputs = []
        return call.structure(outputs)

    def at_a_place(self) -> contextlib.AbstractContextManager[None]:
        """Let functions run as they are."""
        return patched(self, busy=True)

    def module_gradient(self, module: torch.nn.Module) -> Any:
        """Give the gradient for a module, if it is of a kind."""
        if self.busy or threading.get_ident() != self._thread:  # what other threads call is left alone
            return None
        self.seen[class_of(module).__name__] += 1
        kind = kind_of(module, self.modules)
        if kind is None:
            return None
        self.replaced[kinds.name(kind)] += 1
        return self.gradients.by_kind[kind]


def asking(overriding: Overriding, native: Any) -> Any:
    """Call modules as before, but for those that have another gradient."""

    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        gradient = None if is_layer(module) else overriding.module_gradient(module)  # Keras calls its own
        if gradient is None:
            return native(module, *args, **kwargs)

        @functools.wraps(module.forward)
        def run(*args: Any, **kwargs: Any) -> Any:
            return native(module, *args, **kwargs)

        run.__name__ = type(module).__name__
        return overriding.gradients.wrap(run, gradient)(*args, **kwargs)

    return call


_HOLE = object()  # stands for a tensor among arguments


class _Call:
    """One call of a function of PyTorch: its tensors, and how to run it on others."""

    def __init__(self, overriding: Overriding, func: Any, args: Any, kwargs: Any) -> None:
        self.overriding = overriding
        self.func = func
        self.inputs: list[Any] = []
        self.occurrence: Any = None
        self._structure = put(self._hollow, (args, kwargs))
        self._outputs: Any = None

    def _hollow(self, leaf: Any) -> Any:
        """Take the tensors out of arguments."""
        if isinstance(leaf, torch.Tensor):
            self.inputs.append(leaf)
            return _HOLE
        return leaf

    @property
    def options(self) -> dict[str, Any]:
        """Give what was passed beside tensors: by name, or by its number among what came by position."""
        args, kwargs = self._structure
        unnamed = [value for value in args if value is not _HOLE]
        return {
            **{str(i): value for i, value in enumerate(unnamed)},
            **{name: value for name, value in kwargs.items() if value is not _HOLE},
        }

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Run the function itself."""
        rest = iter(tensors)
        args, kwargs = put(lambda leaf: next(rest) if leaf is _HOLE else leaf, self._structure)
        with self.overriding.at_a_place():
            result = self.func(*args, **kwargs)
        self._outputs = None if isinstance(result, torch.Tensor) else type(result)
        return [result] if self._outputs is None else list(result)

    def structure(self, outputs: Sequence[Any]) -> Any:
        """Give outputs as the function does."""
        return outputs[0] if self._outputs is None else self._outputs(outputs)


class _Running(Derived):
    """The operation of one place, which runs the function and has the gradient that was given."""

    def __init__(self, call: _Call) -> None:
        super().__init__(call.occurrence)
        self.name = call.occurrence.name
        self.identity = _Running
        self.call = call

    def forward(self, tensors: Sequence[Any]) -> tuple[list[Any], Pullback]:
        outputs = self.call.run(tensors)
        self.call.occurrence.ran(outputs)
        self.call.occurrence.let_go()  # an output holds its node, and the node this occurrence
        return outputs, _Given(self, tensors, list(map(self.host.outline, outputs)))


class _Given(Rerun):
    """Run the gradient that was given."""

    def __call__(self, cotangents: Sequence[Any], variables: Sequence[Any] = ()) -> Cotangents:
        running, tensors = self.operation, list(self.tensors)
        call, occurrence = running.call, running.call.occurrence

        def output() -> Any:
            # Not the bare result: its own derivative is the one that is given here.
            return occurrence.form.filled(running.host.apply(running, tensors))

        with call.overriding.at_a_place():
            return occurrence.pulled(tensors, filled(self, cotangents), output)


class Overridden:
    """A function or module with other gradients inside. `replaced` counts those of the last call."""

    def __init__(self, function: Any, overriding: Callable[[], Overriding]) -> None:
        self.original = function
        self.replaced: dict[str, int] = {}
        self.__name__ = str(getattr(function, "__name__", type(function).__name__))
        overriding()  # a kind that is none is refused here
        inside = self.inside

        def run(*args: Any, **kwargs: Any) -> Any:
            context = overriding()
            with context:
                outputs = inside(context, function, args, kwargs)
            self.replaced = dict(context.replaced)
            context.gradients.check(self.replaced, list(context.seen), self.__name__)
            return outputs

        run.__name__ = self.__name__
        self._run = run
        self._opaque = Opaque()
        self._opaque.function = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing(dynamo.PROGRAM):
            return called_whole(self._opaque, args, kwargs)
        return self._run(*args, **kwargs)

    @staticmethod
    def inside(context: Overriding, function: Any, args: Any, kwargs: Any) -> Any:
        """Run the function, inside its override."""
        return function(*args, **kwargs)
