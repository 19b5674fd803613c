"""Listening to PyTorch.

A subclass of `torch.autograd.Function` runs through the one `Function.apply`, which asks a question before
anything else: that question is listened to, and `apply` stays as it is, for pickle, for the compiler and in
tracebacks. An operator of `torch.library` runs through the kernel made for its backward, and `torch.compile`
reads a Function with one method of its own.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pullback.record.place import Source
from pullback.record.torch.rules import (
    DEFINITIONS,
    KERAS,
    function_rule,
    keras_rule,
    operator_rule,
    source_of,
)

if TYPE_CHECKING:
    from pullback.record.recorder import Given, Recorder

FUNCTIONS = "torch.autograd.function"
OPERATORS = "torch._library.autograd"
COMPILER = "torch._dynamo.variables.misc"
SKIPPED = "torch._dynamo.trace_rules"


def listeners(recorder: Recorder) -> dict[str, Callable[[Any], Callable[[], None]]]:
    """Give what is done when a module of PyTorch's is imported; each gives what undoes it."""
    return {
        FUNCTIONS: lambda module: _functions(module, recorder),
        OPERATORS: lambda module: _operators(module, recorder),
        DEFINITIONS: lambda module: _definitions(module, recorder),
        COMPILER: lambda module: _compiler(module, recorder),
        SKIPPED: _skipped,
    }


def _told(recorder: Recorder, kind: Any, given: Callable[[], Given]) -> None:
    """Tell of a call of a Function; Keras has one, which is handed the function that a user wrote."""
    if kind.__module__ != KERAS:
        recorder.called(lambda: source_of(kind), given, lambda: function_rule(kind))
        return

    def rest() -> Given:
        args, kwargs = given()
        return args[1:], kwargs

    recorder.called(lambda: Source.of(given()[0][0]), rest, lambda: keras_rule(given()[0][0]))


def _functions(module: Any, recorder: Recorder) -> Callable[[], None]:
    code = module.Function.__dict__["apply"].__func__.__code__
    ask = module._is_setup_context_defined
    init = module.FunctionMeta.__init__

    @functools.wraps(ask)
    def asked(setup_context: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code is code:
            here = caller.f_locals
            _told(recorder, here["cls"], lambda: (here["args"], here["kwargs"]))
        return ask(setup_context)

    @functools.wraps(init)
    def made(cls: Any, *args: Any, **kwargs: Any) -> None:
        init(cls, *args, **kwargs)
        if issubclass(cls, module.Function) and cls.forward is not module.Function.forward:
            recorder.made(lambda: source_of(cls), lambda: function_rule(cls))

    module._is_setup_context_defined = asked
    module.FunctionMeta.__init__ = made

    def undo() -> None:
        module._is_setup_context_defined = ask
        module.FunctionMeta.__init__ = init

    return undo


def _operators(module: Any, recorder: Recorder) -> Callable[[], None]:
    make = module.make_autograd_impl

    @functools.wraps(make)
    def listening(op: Any, info: Any) -> Any:
        kernel = make(op, info)
        operator = info if hasattr(info, "_opoverload") else op

        @functools.wraps(kernel)
        def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            if info._backward_fn is not None:
                recorder.called(
                    lambda: Source.of(getattr(info, "_init_fn", None) or info._backward_fn),
                    lambda: (args, kwargs),
                    lambda: operator_rule(operator, info),
                )
            return kernel(keyset, *args, **kwargs)

        if operator is op:  # a definition by name: its backward is there already
            recorder.made(lambda: Source.of(info._backward_fn), lambda: operator_rule(op, info))
        return run

    module.make_autograd_impl = listening

    def undo() -> None:
        module.make_autograd_impl = make

    return undo


def _definitions(module: Any, recorder: Recorder) -> Callable[[], None]:
    register = module.CustomOpDef.register_autograd

    @functools.wraps(register)
    def registered(self: Any, *args: Any, **kwargs: Any) -> None:
        register(self, *args, **kwargs)
        recorder.made(lambda: Source.of(self._init_fn), lambda: operator_rule(self, self))

    module.CustomOpDef.register_autograd = registered

    def undo() -> None:
        module.CustomOpDef.register_autograd = register

    return undo


def _compiler(module: Any, recorder: Recorder) -> Callable[[], None]:
    variable = getattr(module, "AutogradFunctionVariable", None)
    if variable is None:
        return lambda: None
    call = variable.call_apply

    @functools.wraps(call)
    def call_apply(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        result = call(self, tx, args, kwargs)
        _told(
            recorder,
            self.fn_cls,
            lambda: (tuple(map(_read, args)), {name: _read(value) for name, value in kwargs.items()}),
        )
        return result

    variable.call_apply = call_apply

    def undo() -> None:
        variable.call_apply = call

    return undo


def _read(tracked: Any) -> Any:
    """Give what the compiler knows of an argument: a hollow tensor, or a constant."""
    if tracked.is_tensor():
        return tracked.as_proxy().node.meta["example_value"]
    return tracked.as_python_constant()


def _skipped(module: Any) -> Callable[[], None]:
    """Keep the compiler from reading the recorder itself, when a program compiles what calls it."""
    module.add("pullback.record")
    return lambda: None
