"""Does a function keep its gradient in a SavedModel?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


def survives_export(run: Callable[..., Any], tensors: Sequence[Any], variables: Sequence[Any]) -> bool:
    """Save a function, load it again, and compare outputs and gradients."""
    module = tf.Module()
    module.kept = list(variables)  # a SavedModel stores only the variables that hang on it
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
    module.run = tf.function(run, input_signature=specs, autograph=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
            tf.saved_model.save(module, folder, options=options)
            loaded = tf.saved_model.load(folder)
            pairs = zip(_differentiated(run, tensors), _differentiated(loaded.run, tensors))
            return all(_same(ours, theirs) for ours, theirs in pairs)
    except Exception:  # what cannot be saved or loaded is not exported, whatever the reason
        return False


def _differentiated(run: Callable[..., Any], tensors: Sequence[Any]) -> list[Any]:
    watched = [tensor for tensor in tensors if tensor.dtype.is_floating or tensor.dtype.is_complex]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = list(run(*tensors))
    return outputs + tape.gradient(outputs, watched)


def _same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    a, b = (tf.cast(tf.convert_to_tensor(t), tf.complex128).numpy() for t in (ours, theirs))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-3, equal_nan=True))
