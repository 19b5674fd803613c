"""TensorFlow as the recorder sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.record.framework import Framework
from pullback.record.sample import Spec
from pullback.view.tensorflow import native


class TensorFlow(Framework):
    """Copy dense tensors and variables."""

    natives = native
    loggers = ("absl", "tensorflow")

    def owns(self, leaf: Any) -> bool:
        tf = sys.modules.get("tensorflow")
        if tf is None or not hasattr(tf, "is_tensor"):
            return False
        if isinstance(leaf, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)):
            return False
        return bool(tf.is_tensor(leaf) or isinstance(leaf, tf.Variable))

    def spec(self, tensor: Any) -> Spec:
        return Spec(None if tensor.shape.rank is None else tuple(tensor.shape.as_list()), tensor.dtype.name)

    def trained(self, tensor: Any) -> bool:
        import tensorflow as tf

        return isinstance(tensor, tf.Variable)

    def operation(self, kind: str, names: Sequence[str]) -> Callable[..., Any] | None:
        import tensorflow as tf

        raw = getattr(tf.raw_ops, kind, None)
        return None if raw is None else lambda *tensors: raw(**dict(zip(names, tensors)))

    def copied(self, value: Any) -> Any:
        try:
            return np.asarray(value.numpy())
        except (AttributeError, NotImplementedError):  # a graph is being traced: there is no value yet
            return None

    def absent(self, cotangent: Any) -> bool:
        import tensorflow as tf

        kind = "" if hasattr(cotangent, "numpy") else getattr(getattr(cotangent, "op", None), "type", "")
        if not kind:
            return super().absent(cotangent)
        # What a graph computes is not there yet; the zeros that TensorFlow fills in are.
        known = None if kind == "ZerosLike" else tf.get_static_value(cotangent)
        return kind == "ZerosLike" or (known is not None and not np.any(known))

    def thaw(self, array: Any, device: str) -> Any:
        import tensorflow as tf

        return tf.constant(array)


FRAMEWORK = TensorFlow()
