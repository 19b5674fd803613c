"""PyTorch's own rules: subclasses of `torch.autograd.Function`, and operators of `torch.library`.

A Function runs through the one `Function.apply`, which asks a question before anything else: that question is
listened to, and `apply` stays as it is, for pickle, for the compiler and in tracebacks. An operator runs
through the kernel made for its backward, and `torch.compile` reads a Function with one method of its own.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pullback.hosts.base import Meeting
from pullback.patched import patched
from pullback.view.definition import location_of, location_of_class
from pullback.view.native import (
    ByHand,
    Given,
    Keeps,
    Listen,
    Listener,
    Native,
    Opening,
    collecting,
    is_bypassed,
)
from pullback.view.torch import pulled
from pullback.view.torch.context import Context, function_of, has_setup, signature_of

FUNCTIONS = "torch.autograd.function"
OPERATORS = "torch._library.autograd"
DEFINITIONS = "torch._library.custom_ops"
COMPILER = "torch._dynamo.variables.misc"
KERAS = "keras.src.backend.torch.core"


class TorchRule(Native):
    """A rule of PyTorch's that has a backward."""

    framework = "torch"
    forward: Callable[..., Any]  # (context, args, kwargs) ↦ outputs
    backward: Callable[..., Any]  # (context, *cotangents) ↦ cotangents

    def by_hand(self) -> ByHand | None:
        return self._pull

    def _pull(self, args: Sequence[Any], kwargs: dict[str, Any], cotangents: Sequence[Any]) -> Opening:
        import torch

        from pullback.hosts.torch import HOST

        rest = iter(cotangents)

        def cotangent(output: Any) -> Any:
            if not isinstance(output, torch.Tensor):
                return None
            return next(rest) if HOST.differentiable(output) else torch.zeros_like(output)

        if self.signature is not None:
            bound = self.signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        with torch.no_grad():
            context = Context(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
            outputs = self.forward(context, args, kwargs)
            every = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        # PyTorch records nothing while a backward runs.
        return torch.no_grad()(self.backward), [context, *map(cotangent, every)], lambda found: found


class AutogradFunction(TorchRule):
    """A subclass of `torch.autograd.Function`: what is called is its `apply`."""

    kind = "torch.autograd.Function"

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.spelled = f"{function.__name__}.apply"
        self.signature = signature_of(function)
        self.backward = function.backward
        self.pushes = function.jvp is not sys.modules["torch"].autograd.Function.jvp

    @functools.cached_property
    def location(self) -> tuple[str, int]:
        """Find the line of the class, or that of its forward; asked for late, since Python reads the file."""
        return location_of_class(self.user, location_of(self.user.forward))

    def parts(self) -> dict[str, Any]:
        base = sys.modules["torch"].autograd.Function
        held = {
            k: v
            for kind in reversed(self.user.__mro__)
            if kind not in base.__mro__
            for k, v in vars(kind).items()
        }
        open_ = {k: v for k, v in sorted(held.items()) if not k.startswith("_")}
        return {"name": self.user.__qualname__, **open_}

    def kept(self) -> tuple[Any, Any]:
        return self.user.apply, self.user

    def remade(self, parts: Mapping[Any, Any]) -> Any:
        names = ("forward", "backward", "setup_context", "jvp", "vmap")
        own = {name: getattr(self.user, name) for name in names}
        # What is wrapped stays so: `once_differentiable` promises no second order.
        given = {name: parts.get(f) or parts.get(inspect.unwrap(f)) for name, f in own.items()}
        held = {name: staticmethod(part) for name, part in given.items() if part is not None}
        made: Any = type(self.user.__name__, (self.user,), {**held, "__module__": self.user.__module__})
        return made.apply if held else None

    def forward(self, context: Context, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if not has_setup(self.user):
            return self.user.forward(context, *args, **kwargs)
        outputs = self.user.forward(*args, **kwargs)
        self.user.setup_context(context, tuple(args), outputs)
        return outputs


class Operator(TorchRule):
    """An operator of `torch.library`; `info` holds the functions that it was made of."""

    kind = "torch.library"

    def __init__(self, operator: Any, info: Any) -> None:
        super().__init__(getattr(info, "_init_fn", None) or info._backward_fn)
        self.operator, self.info, self.backward = operator, info, info._backward_fn
        self.signature = inspect.signature(self.user) if self.user is not info._backward_fn else None
        self.name = str(getattr(operator, "_opoverload", operator)._schema.name)

    @property
    def anchor(self) -> Any:
        return self.info

    def parts(self) -> dict[str, Any]:
        held = {"function": self.user, "backward": self.backward, "setup": self.info._setup_context_fn}
        return {"name": self.name, **held}

    @property
    def qualified(self) -> str:
        return self.name

    def kept(self) -> tuple[Any, Any]:
        return self.operator, self.user

    def remade(self, parts: Mapping[Any, Any]) -> Any:
        held = (self.user, self.info._setup_context_fn, self.backward)
        return function_of(*(parts.get(part, part) for part in held))

    def forward(self, context: Context, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        outputs = self.info._init_fn(*args, **kwargs)
        if self.info._setup_context_fn is not None:
            self.info._setup_context_fn(ctx=context, inputs=tuple(args), output=outputs)
        return outputs


class KerasRule(Native):
    """A function under `keras.ops.custom_gradient`, which one Function of Keras' is handed."""

    framework = "torch"
    kind = "keras.ops.custom_gradient"

    def kept(self) -> tuple[Any, Any]:
        return sys.modules[KERAS].custom_gradient(self.user), self.user


# ── recognising ──────────────────────────────────────────────────────────────────────────────────────────


def found(value: Any) -> TorchRule | None:
    """Recognise a rule that stands in a module."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):
        return None
    if isinstance(value, type):
        return AutogradFunction(value) if _is_rule(value, torch.autograd.Function) else None
    return Operator(value, value) if _is_operator(value) and value._backward_fn is not None else None


def named(value: Any) -> TorchRule | None:
    """Recognise a Function, its `apply`, or an operator."""
    owner = getattr(value, "__self__", None)
    return found(owner if inspect.isclass(owner) and getattr(value, "__name__", "") == "apply" else value)


def written(function: Any) -> Any:
    """Give what the user wrote: the class of a Function, the function of an operator."""
    if _is_operator(function):
        return function._init_fn
    known = named(function)
    return function if known is None else known.user


def _is_rule(kind: Any, base: Any) -> bool:
    """Tell whether a class is a Function with a forward of its own."""
    return issubclass(kind, base) and kind.forward is not base.forward


def _is_operator(value: Any) -> bool:
    return type(value).__name__ == "CustomOpDef" and type(value).__module__ == DEFINITIONS


# ── bypassing ────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def bypassed(keeps: Keeps | None = None) -> Iterator[Meeting]:
    """Run a Function's `forward` with autograd recording, and an operator as the function it was made of.

    Nothing is compiled meanwhile: what was compiled with its rules has them, and what is compiled without
    them must not be kept.
    """
    import torch

    from pullback.hosts.torch import HOST
    from pullback.hosts.torch.private import CustomOpDef, uncompiled

    # `MyFunction.apply` may be kept in a variable: it is this class, below it, that is asked in every call.
    single: Any = torch.autograd.Function.__mro__[1]
    call = CustomOpDef.__call__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        native = AutogradFunction(cls)
        is_user = cls.__module__.partition(".")[0] not in ("torch", "pullback")  # those stay what they are
        if not is_user or not is_bypassed(lambda: native):
            return super(single, cls).apply(*args, **kwargs)
        context = Context(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
        return native.forward(context, args, kwargs)

    def body_only(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._backward_fn is None or not is_bypassed(lambda: Operator(self, self)):
            return call(self, *args, **kwargs)
        return self._init_fn(*args, **kwargs)

    with (
        collecting(HOST, keeps) as met,
        uncompiled(),
        patched(single, apply=classmethod(apply)),
        patched(CustomOpDef, __call__=body_only),
    ):
        yield met


# ── listening ────────────────────────────────────────────────────────────────────────────────────────────


def listeners(listener: Listener) -> dict[str, Listen]:
    """Say how to listen, by module."""
    ways = {FUNCTIONS: _functions, OPERATORS: _operators, DEFINITIONS: _definitions, COMPILER: _compiler}
    return {name: functools.partial(way, listener) for name, way in ways.items()}


def _told(listener: Listener, kind: Any, given: Callable[[], Given]) -> None:
    """Tell of a call of a Function; that of Keras is handed the function that a user wrote."""
    if kind.__module__ != KERAS:
        listener.called(lambda: AutogradFunction(kind), given)
        return

    def rest() -> Given:
        args, kwargs = given()
        return args[1:], kwargs

    listener.called(lambda: KerasRule(given()[0][0]), rest)


@contextlib.contextmanager
def _functions(listener: Listener, module: Any) -> Iterator[None]:
    code = module.Function.__dict__["apply"].__func__.__code__
    ask, init = module._is_setup_context_defined, module.FunctionMeta.__init__

    @functools.wraps(ask)
    def asked(setup_context: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code is code:
            here = caller.f_locals
            _told(listener, here["cls"], lambda: (here["args"], here["kwargs"]))
        return ask(setup_context)

    @functools.wraps(init)
    def made(cls: Any, *args: Any, **kwargs: Any) -> None:
        init(cls, *args, **kwargs)
        if _is_rule(cls, module.Function):
            listener.made(lambda: AutogradFunction(cls))

    asking, making = patched(module, _is_setup_context_defined=asked), {"__init__": made}
    pulling = pulled.listening(listener, module, AutogradFunction)
    with asking, patched(module.FunctionMeta, **making), pulling:
        yield


def _operators(listener: Listener, module: Any) -> contextlib.AbstractContextManager[None]:
    make = module.make_autograd_impl

    @functools.wraps(make)
    def listening(op: Any, info: Any) -> Any:
        kernel = make(op, info)
        operator = info if hasattr(info, "_opoverload") else op

        @functools.wraps(kernel)
        def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            if info._backward_fn is not None:
                listener.called(lambda: Operator(operator, info), lambda: (args, kwargs))
            return kernel(keyset, *args, **kwargs)

        if operator is op:  # a definition by name: its backward is there already
            listener.made(lambda: Operator(op, info))
        return run

    return patched(module, make_autograd_impl=listening)


def _definitions(listener: Listener, module: Any) -> contextlib.AbstractContextManager[None]:
    register = module.CustomOpDef.register_autograd

    @functools.wraps(register)
    def registered(self: Any, *args: Any, **kwargs: Any) -> None:
        register(self, *args, **kwargs)
        listener.made(lambda: Operator(self, self))

    return patched(module.CustomOpDef, register_autograd=registered)


def _compiler(listener: Listener, module: Any) -> contextlib.AbstractContextManager[None]:
    variable = getattr(module, "AutogradFunctionVariable", None)
    if variable is None:
        return contextlib.nullcontext()
    call = variable.call_apply

    @functools.wraps(call)
    def call_apply(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        result = call(self, tx, args, kwargs)
        _told(listener, self.fn_cls, functools.partial(_read, args, kwargs))
        return result

    return patched(variable, call_apply=call_apply)


def _read(args: Any, kwargs: Any) -> Given:
    """Give what the compiler knows of arguments: hollow tensors, and constants."""

    def known(tracked: Any) -> Any:
        hollow = tracked.is_tensor()
        return tracked.as_proxy().node.meta["example_value"] if hollow else tracked.as_python_constant()

    return tuple(map(known, args)), {name: known(value) for name, value in kwargs.items()}
