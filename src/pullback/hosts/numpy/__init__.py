"""The NumPy host: values and nothing else, for rules whose bodies name no framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.dtypes import kind
from pullback.errors import HostError
from pullback.hosts.base import Host
from pullback.hosts.numpy import arrays, callback
from pullback.hosts.operation import Operation
from pullback.hosts.specs import Spec, summed_axes


class NumPyHost(Host):
    """Run the bodies of rules. Nobody differentiates a NumPy array."""

    name = "NumPy"
    arrays: Any = arrays

    def owns(self, kind: type) -> bool:
        return issubclass(kind, (np.ndarray, np.generic))

    def ready(self, values: Sequence[Any]) -> bool:
        for value in values:  # noqa: SIM110 (a generator costs more than the rest)
            if type(value) is not np.ndarray or value.dtype.kind not in "fc":
                return False
        return True

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, (np.ndarray, np.generic))

    def tensor(self, value: Any, *, where: str, argument: str) -> Any:
        return np.asarray(value)

    def spec(self, tensor: Any) -> Spec:
        array = np.asarray(tensor)
        name = array.dtype.name
        return Spec(array.shape, name, kind(name))

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Any]) -> bool:
        return all(
            isinstance(c, np.ndarray) and c.shape == x.shape and c.dtype == x.dtype
            for c, x in zip(cotangents, likes)
        )

    def conform(self, cotangent: Any, like: Any) -> Any:
        return np.asarray(cotangent).astype(like.dtype)

    def lone(self, output: Any) -> Any:
        if type(output) is np.ndarray and output.dtype.kind in "fc":
            return output.shape, output.dtype
        return None

    def zeros(self, like: Any) -> Any:
        return np.zeros(*like)

    def outline(self, output: Any) -> Any:
        return np.shape(output), output.dtype

    def apply(self, operation: Operation, tensors: list[Any]) -> list[Any]:
        return operation.forward(tensors)[0]

    callback = staticmethod(callback.callback)

    def unbroadcast(self, cotangent: Any, like: Any) -> Any:
        cotangent = np.asarray(cotangent)
        axes = summed_axes(cotangent.shape, np.shape(like))
        return cotangent.sum(axes).reshape(np.shape(like)) if axes else cotangent

    def conjugate(self, tensor: Any) -> Any:
        return np.conj(tensor)

    # ── what nobody asks of arrays ───────────────────────────────────────────────────────────────────────

    def readable(self, tensor: Any) -> bool:
        return True

    def idle(self, tensors: Sequence[Any]) -> bool:
        return True

    def refused(self, job: str, found: str = "nobody differentiates them") -> HostError:
        return super().refused(job, found)


HOST = NumPyHost()
