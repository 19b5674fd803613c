"""`pb.namespace`: the array-API functions of the framework that arrays are of.

A body written with `xp = pb.namespace(x)` names no framework, so it runs on each of them, and on NumPy for
values. A namespace is a module of the framework's own world wherever there is one: `jax.numpy` and NumPy as
they are, array-api-compat for PyTorch. TensorFlow has none; ours is a thin table of its functions. What a
namespace makes lies where its arrays do: on PyTorch a new tensor would be the CPU's beside one of a GPU.
"""

from __future__ import annotations

import functools
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback import hosts
from pullback.errors import HostError, NoTensorError, UnsupportedInputError
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.numpy import HOST as NUMPY
from pullback.unconverted import unconverted

_NUMPY = "numpy" if int(np.__version__.partition(".")[0]) >= 2 else "array_api_compat.numpy"
_NUMBERS = (bool, int, float, complex, type(None))  # they have the dtype of whatever array they meet


@unconverted
def namespace(x: Any, *more: Any) -> Any:
    """Give the array-API functions of the framework that arrays are of.

    Args:
        x: An array or tensor.
        more: Others, if any of them may be the one that is a tensor. Beside a tensor, NumPy arrays count as
            its framework's, as in the call of a rule. Python numbers and None are passed over.

    Example:
        >>> import numpy as np, pullback as pb
        >>> @pb.custom_gradient
        ... def log1pexp(x):
        ...     xp = pb.namespace(x)
        ...     e = xp.exp(x)
        ...     def grad(dy):
        ...         return dy * (1 - 1 / (1 + e))
        ...     return xp.log(1 + e), grad
        >>> log1pexp(np.zeros(2)).round(3).tolist()
        [0.693, 0.693]

    Do not use it for what only one framework has: a body may be written in the functions of one.
    """
    host: Host | None = None
    owner: Any = None
    for value in (x, *more):
        if isinstance(value, _NUMBERS):
            continue
        found = _host_of(value)
        if host is None or host is NUMPY:
            host, owner = found, value
        elif found is not host and found is not NUMPY:
            raise HostError.about(
                "namespace",
                found=f"a {host.name} tensor ({_kind(owner)}) and a {found.name} tensor ({_kind(value)})",
                expected="arrays of one framework",
                fix="convert one of them first",
            )
    if host is None:
        raise NoTensorError.about(
            "namespace",
            found=f"no argument is an array ({', '.join(_kind(value) for value in (x, *more))})",
            expected="at least one tensor or NumPy array",
            why="a Python number belongs to no framework",
            fix="pb.namespace(x), where x is a tensor argument of the body",
        )
    module, device = _module(hosts.framework_of(host), host.name), host.device(owner)
    return module if device is None else _at(module, device)


def _host_of(value: Any) -> Host:
    role = hosts.role(type(value))
    if not isinstance(role, Role):
        return role
    if role is Role.ARRAY or isinstance(value, np.generic):
        return NUMPY
    raise UnsupportedInputError.about(
        "namespace",
        found=f"a {_kind(value)}, which is no array",
        expected="tensors of TensorFlow, JAX or PyTorch, or NumPy arrays",
        fix="pb.namespace(*values)" if isinstance(value, (list, tuple)) else "leave it out",
    )


@functools.cache
def _module(framework: str, name: str) -> ModuleType:
    """Import what speaks the array API for a framework that the program has imported."""
    try:
        module = import_module(hosts.SUPPORTED[framework].namespace if framework else _NUMPY)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "array_api_compat":
            raise
        raise HostError.about(
            "namespace",
            found=f"a {name} array, and array-api-compat is not installed",
            expected=f"array-api-compat, which gives {name} the names of the array API",
            fix="pip install array-api-compat",
        ) from None
    for function in (*vars(module).values(), *vars(module.linalg).values()):
        if isinstance(function, FunctionType) and function.__module__.startswith("pullback."):
            unconverted(function)
    return module


@functools.cache
def _at(module: ModuleType, device: Any) -> ModuleType:
    """Give a namespace that makes its arrays on a device, unless another one is said."""

    def asarray(value: Any, /, **options: Any) -> Any:
        stays = not isinstance(hosts.role(type(value)), Role)  # a tensor is where it was put
        return module.asarray(value, **(options if stays else {"device": device, **options}))

    there = ModuleType(module.__name__, module.__doc__)
    vars(there).update(vars(module))
    for name in ("arange", "empty", "eye", "full", "linspace", "ones", "zeros"):
        setattr(there, name, functools.partial(getattr(module, name), device=device))
    there.asarray = asarray  # type: ignore[attr-defined]
    return there


def _kind(value: Any) -> str:
    return type(value).__name__
