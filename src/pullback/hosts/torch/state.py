"""State that a body changes in place: a second run of the body leaves it as it was found.

Buffers count steps and average statistics while a body runs. When it is run again, for a derivative, what it
writes into tensors older than the run is taken back, and so are their version counters: whoever saved such a
tensor finds it untouched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pullback.hosts.torch import private

_RUNNING = ("running_mean", "running_var")  # written to by operations that do not say so


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Take back what operations write into tensors that are older than this context."""
    if private.traced():  # a compiler sees operations, and state is its affair
        yield
        return
    writing = _Writing()
    try:
        with private.listening(), writing:
            yield
    finally:
        writing.undo()


class _Writing(private.TorchDispatchMode):
    """Copy tensors from outside before they are written to."""

    def __init__(self) -> None:
        super().__init__()
        self._inside: set[int] = set()  # the places of storages that were made meanwhile
        self._before: list[tuple[Any, Any, bool, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for tensor in _written(func, args, kwargs):
            if self._is_older(tensor):
                versions = private.versions_kept(tensor)
                self._before.append((tensor, tensor.detach().clone(), tensor.requires_grad, versions))
        result = func(*args, **kwargs)
        if _makes(func):
            self._inside.update(map(_place, _dense(result)))
        return result

    def _is_older(self, tensor: Any) -> bool:
        if _place(tensor) in self._inside:
            return False
        # An array of NumPy's becomes a tensor without an operation. A tensor that the first run has written
        # to has another version than a new one.
        return bool(tensor._version > 0 or tensor.untyped_storage().resizable())

    def undo(self) -> None:
        """Write back what was there."""
        with torch.no_grad():
            for tensor, before, recorded, versions in reversed(self._before):
                if tensor.requires_grad and not recorded:  # the second run was recorded into it
                    (tensor if tensor._base is None else tensor._base).detach_()
                tensor.copy_(before)
                versions.__exit__(None, None, None)
        self._before.clear()


def _written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Any]:
    """List the tensors that an operation writes to."""
    for i, argument in enumerate(func._schema.arguments):
        alias = argument.alias_info
        if (alias is not None and alias.is_write) or argument.name in _RUNNING:
            yield from _dense(args[i] if i < len(args) else kwargs.get(argument.name))


def _dense(value: Any) -> list[Any]:
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v for v in values if isinstance(v, torch.Tensor) and v.layout is torch.strided]


def _makes(func: Any) -> bool:
    """Tell whether the results of an operation have memory of their own."""
    if func is torch.ops.aten.lift_fresh.default:  # `torch.tensor`
        return True
    return all(result.alias_info is None for result in func._schema.returns)


def _place(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
