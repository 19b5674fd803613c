"""PyTorch's custom gradients as the recorder sees them.

A subclass of `torch.autograd.Function` runs through the one `Function.apply`, which asks a question before
anything else: that question is listened to, and `apply` stays as it is, for pickle, for the compiler and in
tracebacks. An operator of `torch.library` runs through the kernel made for its backward, and `torch.compile`
reads a Function with one method of its own.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.record.place import Source, name_of, place_of
from pullback.record.sample import Recorded, Spec

if TYPE_CHECKING:
    from pullback.record.recorder import Recorder

FUNCTIONS = "torch.autograd.function"
OPERATORS = "torch._library.autograd"
DEFINITIONS = "torch._library.custom_ops"
COMPILER = "torch._dynamo.variables.misc"
KERAS = "keras.src.backend.torch.core"


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────────────


def owns(leaf: Any) -> bool:
    """Tell whether a leaf is a tensor or a parameter."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(leaf, torch.Tensor)


def freeze(tensor: Any) -> Any:
    """Copy a tensor, or the one that a transformation wraps; else take shape and dtype."""
    import torch

    value, cuts = _carried(tensor)
    if value is None:
        return spec(tensor)
    # No transformation, mode or subclass of the program may see what is done here.
    with (
        torch._C._DisableFuncTorch(),
        torch._C._DisableTorchDispatch(),
        torch._C.DisableTorchFunctionSubclass(),
        torch.no_grad(),
    ):
        plain = value.detach()
        if plain.layout != torch.strided or plain.is_quantized or plain.is_nested:
            return plain.clone()
        frozen = _array(plain.resolve_conj().resolve_neg().to("cpu", copy=True))
    if frozen is None:
        return plain.clone()
    for axis in reversed(cuts):
        frozen = np.take(frozen, 0, axis)
    return np.array(frozen)


def _array(tensor: Any) -> Any:
    """Give a tensor as an array; None for a dtype that NumPy has no name for."""
    try:
        return tensor.numpy()
    except TypeError:
        name = str(tensor.dtype).removeprefix("torch.")
    try:
        import ml_dtypes
    except ImportError:
        return None
    dtype = getattr(ml_dtypes, name, None)
    whole = {1: "uint8", 2: "int16"}.get(tensor.element_size())
    if dtype is None or whole is None:
        return None
    return tensor.view(getattr(sys.modules["torch"], whole)).numpy().view(dtype)


def spec(tensor: Any) -> Spec:
    """Take the shape and dtype of a tensor."""
    # An `int()` of a length that is not settled yet would settle it for the program.
    shape = tuple(n if type(n) is int else None for n in tensor.shape)
    return Spec(shape, str(tensor.dtype).removeprefix("torch."))


def _carried(tensor: Any) -> tuple[Any, list[int]]:
    """Follow the wrappers of `torch.func` down to a value, and list the batch axes on the way.

    While `torch.compile` or `torch.export` trace there is none.
    """
    import torch

    functorch = torch._C._functorch
    cuts: list[int] = []
    while functorch.is_functorch_wrapped_tensor(tensor):
        axis = functorch.maybe_get_bdim(tensor)
        if axis >= 0:
            cuts.append(axis)
        tensor = functorch.get_unwrapped(tensor)
    # One that dispatches by itself may hold nothing, or its data elsewhere: fake, functional, sharded ones.
    own = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if own or tensor.is_meta or torch._is_functional_tensor(tensor):
        return None, []
    return tensor, cuts


def device(tensor: Any) -> str:
    """Name the device of a tensor."""
    return "" if tensor.is_meta else str(tensor.device)


def thaw(array: Any, device: str) -> Any:
    """Make a tensor of an array again, on the device that it came from."""
    import torch

    if array.dtype.kind == "V" or array.dtype.name not in np.sctypeDict:  # bfloat16 and smaller
        dtype = getattr(torch, array.dtype.name)
        return torch.tensor(array.astype(np.float32), device=device or None).to(dtype)
    return torch.tensor(array, device=device or None)


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────


def found(value: Any) -> Recorded | None:
    """Make the record of a rule that stands in a module; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):
        return None
    if inspect.isclass(value):
        return function_rule(value) if _is_rule(value) else None
    if type(value).__name__ == "CustomOpDef" and type(value).__module__ == DEFINITIONS:
        return operator_rule(value, value) if value._backward_fn is not None else None
    return None


def named(value: Any) -> Recorded | None:
    """Make the record of what a user named: a Function, its `apply`, or an operator."""
    owner = getattr(value, "__self__", None)
    if inspect.isclass(owner) and getattr(value, "__name__", "") == "apply":
        return found(owner)
    return found(value)


def _is_rule(kind: Any) -> bool:
    """Tell whether a class is a Function with a forward of its own."""
    base = sys.modules["torch"].autograd.Function
    return issubclass(kind, base) and kind.forward is not base.forward


def function_rule(kind: Any, keras: Any = None) -> Recorded:
    """Make the record of a Function: what is checked is its `apply`."""
    if keras is not None:
        maker = sys.modules[KERAS].custom_gradient
        path, line = place_of(keras)
        module = str(getattr(keras, "__module__", ""))
        return Recorded(
            maker(keras), name_of(keras), "keras.ops.custom_gradient", module, path, line, "torch", user=keras
        )
    path, line = _class_place(kind)
    return Recorded(
        kind.apply, kind.__name__, "torch.autograd.Function", kind.__module__, path, line, "torch",
        user=kind, signature=_signature(kind),
    )  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _class_place(kind: Any) -> tuple[str, int]:
    """Find the line of a class, or that of its forward."""
    path, line = place_of(kind.forward)
    first = kind.__dict__.get("__firstlineno__")  # Python 3.13
    if first is None:
        try:
            first = inspect.getsourcelines(kind)[1]
            path = os.path.abspath(inspect.getsourcefile(kind) or path)
        except (OSError, TypeError):
            first = line
    return path, int(first)


def _signature(kind: Any) -> inspect.Signature | None:
    """Give the arguments of `apply`: those of forward, without the context."""
    try:
        signature = inspect.signature(kind.forward)
    except (TypeError, ValueError):
        return None
    base = sys.modules["torch"].autograd.Function
    if kind.setup_context is not base.setup_context:
        return signature
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def operator_rule(operator: Any, info: Any) -> Recorded:
    """Make the record of an operator of `torch.library`."""
    user = getattr(info, "_init_fn", None) or info._backward_fn
    path, line = place_of(user)
    overload = getattr(operator, "_opoverload", operator)
    name = str(overload._schema.name)
    module = str(getattr(user, "__module__", ""))
    signature = inspect.signature(user) if user is not info._backward_fn else None
    return Recorded(
        operator, name, "torch.library", module, path, line, "torch", user=user, signature=signature
    )


# ── listening ────────────────────────────────────────────────────────────────────────────────────────────


def listeners(recorder: Recorder) -> dict[str, Callable[[Any], Callable[[], None]]]:
    """Give what is done when a module of PyTorch's is imported; each gives what undoes it."""
    return {
        FUNCTIONS: lambda module: _functions(module, recorder),
        OPERATORS: lambda module: _operators(module, recorder),
        DEFINITIONS: lambda module: _definitions(module, recorder),
        COMPILER: lambda module: _compiler(module, recorder),
    }


def _told(recorder: Recorder, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    keras = args[0] if args and kind.__module__ == KERAS else None
    recorder.called(
        lambda: _source(kind, keras),
        args if keras is None else args[1:],
        kwargs,
        lambda: function_rule(kind, keras),
    )


def _source(kind: Any, keras: Any = None) -> Source:
    if keras is not None:
        return Source.of(keras)
    # Two classes may share a forward and differ in their backward.
    codes = tuple(getattr(getattr(kind, name), "__code__", None) for name in ("forward", "backward"))
    return Source((kind.__qualname__, *codes), kind.__module__)


def _functions(module: Any, recorder: Recorder) -> Callable[[], None]:
    code = module.Function.__dict__["apply"].__func__.__code__
    ask = module._is_setup_context_defined
    init = module.FunctionMeta.__init__

    @functools.wraps(ask)
    def asked(setup_context: Any) -> Any:
        caller = sys._getframe(1)
        if caller.f_code is code:
            here = caller.f_locals
            _told(recorder, here["cls"], here["args"], here["kwargs"])
        return ask(setup_context)

    @functools.wraps(init)
    def made(cls: Any, *args: Any, **kwargs: Any) -> None:
        init(cls, *args, **kwargs)
        if issubclass(cls, module.Function) and cls.forward is not module.Function.forward:
            recorder.made(lambda: _source(cls), lambda: function_rule(cls))

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
                    args,
                    kwargs,
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
        try:
            leaves = tuple(_read(a) for a in args), {name: _read(a) for name, a in kwargs.items()}
        except Exception as error:  # a compiler's own view of a list, say
            recorder.errors.append(error)
        else:
            _told(recorder, self.fn_cls, *leaves)
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
