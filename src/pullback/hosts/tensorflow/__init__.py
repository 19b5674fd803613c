"""The TensorFlow host: eager mode, graphs, XLA, distribution.

`eager.py` and `graph.py` hold the two ways to give an operation its own gradient, `public.py` the way that
needs no private function of TensorFlow; this file speaks of single tensors.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pullback.dtypes import COMPUTING, kind
from pullback.errors import UnsupportedInputError
from pullback.hosts import refusals
from pullback.hosts.base import Host, Linear, Opener
from pullback.hosts.foreign import Foreign
from pullback.hosts.keras import is_weight
from pullback.hosts.operation import Operation
from pullback.hosts.overrides import Gradients
from pullback.hosts.specs import Spec, summed_axes
from pullback.hosts.tensorflow import arrays, callback, control, private, public, run

if private.AVAILABLE:
    from pullback.hosts.tensorflow import eager, graph

# The comparisons below are made several times in every eager call. An instance check of tf.Tensor is ten
# times slower than that of this type, which most tensors have.
_EAGER = tf.__internal__.EagerTensor
# So are `.shape` and `.dtype`, against the tuple and the number that they build objects from.
_shape_of = getattr(_EAGER, "_shape_tuple", lambda tensor: tuple(tensor.shape))
_dtype_of = getattr(_EAGER, "_datatype_enum", lambda tensor: tensor.dtype.as_datatype_enum)
_FLOATING = frozenset(tf.as_dtype(name).as_datatype_enum for name in COMPUTING)
_SPARSE = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


class TensorFlowHost(Host):
    """Execute operations in TensorFlow 2."""

    name = "TensorFlow"
    arrays: Any = arrays
    recorded = private.AVAILABLE and os.environ.get("PULLBACK_TENSORFLOW") != "public"

    def owns(self, kind: type) -> bool:
        native = issubclass(kind, (tf.Tensor, tf.Variable, tf.__internal__.CompositeTensor))
        return native or (is_weight(kind) and hasattr(kind, "__tf_tensor__"))

    def opener(self, value: Any) -> Opener | None:
        return _open if hasattr(type(value), "__tf_flatten__") else None

    # ── tensors ──────────────────────────────────────────────────────────────────────────────────────────

    def is_tensor(self, value: Any) -> bool:
        return type(value) is _EAGER or isinstance(value, tf.Tensor)

    def ready(self, values: Sequence[Any]) -> bool:
        for value in values:  # noqa: SIM110 (a generator would cost as much as the rest of the call's binding)
            if type(value) is not _EAGER or _dtype_of(value) not in _FLOATING:
                return False
        return True

    def tensor(self, value: Any, *, where: str, argument: str) -> Any:
        if isinstance(value, _SPARSE):
            kind = type(value).__name__
            fixes = {
                "RaggedTensor": "x.with_flat_values(f(x.flat_values))",
                "SparseTensor": "f(x.values) and rebuild it, or f(tf.sparse.to_dense(x))",
            }
            raise UnsupportedInputError.about(
                where,
                found=f"`{argument}` is a {kind}",
                expected="dense tensors",
                why="a rule is written for dense tensors, and would drop the structure of a sparse one",
                fix=fixes.get(kind, "tf.convert_to_tensor(x)"),
            )
        refusals.require_numbers(value, where, argument, strings=True)
        tensor = value if self.is_tensor(value) else tf.convert_to_tensor(value)
        dtype = tensor.dtype
        if not (
            dtype.is_floating or dtype.is_complex or dtype.is_integer or dtype.is_bool or dtype == tf.string
        ):
            raise UnsupportedInputError.about(
                where,
                found=f"`{argument}` has dtype {dtype.name}",
                expected="a floating, complex, integer, boolean or string tensor",
                fix="dequantize or read it first",
            )
        return tensor

    def spec(self, tensor: Any) -> Spec:
        if isinstance(tensor, (tf.SparseTensor, tf.RaggedTensor)):
            return Spec(None, type(tensor).__name__, "other")
        if isinstance(tensor, tf.IndexedSlices):
            known = None if tensor.dense_shape is None else tf.get_static_value(tensor.dense_shape)
            shape = None if known is None else tuple(int(n) for n in known)
        else:
            if not hasattr(tensor, "shape") or not hasattr(tensor, "dtype"):
                tensor = tf.convert_to_tensor(tensor)
            rank_known = tf.TensorShape(tensor.shape).rank is not None
            shape = tuple(tf.TensorShape(tensor.shape).as_list()) if rank_known else None
        name = tf.as_dtype(tensor.dtype).name
        return Spec(shape, name, kind(name))

    def differentiable(self, tensor: Any) -> bool:
        if type(tensor) is _EAGER and _dtype_of(tensor) in _FLOATING:
            return True
        dtype = tensor.dtype
        return bool(dtype.is_floating or dtype.is_complex)

    def outline(self, output: Any) -> Any:
        # An eager tensor must not be kept alive for its shape; a symbolic one holds no memory.
        return (_shape_of(output), output.dtype) if type(output) is _EAGER else output

    def lone(self, output: Any) -> Any:
        if type(output) is _EAGER and _dtype_of(output) in _FLOATING:
            return _shape_of(output), output.dtype
        return None

    def zeros(self, like: Any) -> Any:
        return tf.zeros(*like) if isinstance(like, tuple) else tf.zeros_like(like)

    # ── cotangents ───────────────────────────────────────────────────────────────────────────────────────

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Any]) -> bool:
        for cotangent, like in zip(cotangents, likes):
            if type(cotangent) is _EAGER and type(like) is _EAGER:
                if _dtype_of(cotangent) != _dtype_of(like) or _shape_of(cotangent) != _shape_of(like):
                    return False
            elif not (
                isinstance(cotangent, tf.Tensor)
                and type(cotangent) is not _EAGER  # a constant, which a graph takes as its own
                and cotangent.dtype == like.dtype
                and cotangent.shape.is_fully_defined()
                and cotangent.shape == like.shape
            ):
                return False
        return True

    def conform(self, cotangent: Any, like: Any) -> Any:
        cast = tf.cast(cotangent, like.dtype)
        # a graph takes a constant as its own
        return tf.identity(cast) if type(cast) is _EAGER and not tf.executing_eagerly() else cast

    def require_shape(self, cotangent: Any, like: Any, text: str, label: str) -> Any:
        if isinstance(cotangent, tf.IndexedSlices):
            return cotangent
        found, wanted = tf.shape(cotangent), tf.shape(like)
        lengths = tf.raw_ops.Equal(x=found, y=wanted, incompatible_shape_error=False)
        same = tf.reduce_all(lengths) & tf.equal(tf.size(found), tf.size(wanted))
        with tf.control_dependencies([tf.debugging.Assert(same, [text, "found", found, "expected", wanted])]):
            # XLA drops assertions: there the shape becomes an impossible one, and the error names the node
            shape = tf.where(same, wanted, tf.fill(tf.shape(wanted), -2))
            shaped = tf.reshape(cotangent, shape, name=re.sub(r"[^A-Za-z0-9]+", "_", label))
        shaped.set_shape(like.shape)
        return shaped

    def unbroadcast(self, cotangent: Any, like: Any) -> Any:
        cotangent = tf.convert_to_tensor(cotangent)
        have, want = cotangent.shape, tf.TensorShape(like.shape)
        if have.is_fully_defined() and want.is_fully_defined():
            if have == want:
                return cotangent
            axes = summed_axes(tuple(have), tuple(want))
            return tf.reshape(tf.reduce_sum(cotangent, axes), want)
        shape = tf.shape(like)
        axes = tf.raw_ops.BroadcastGradientArgs(s0=shape, s1=tf.shape(cotangent))[0]
        return tf.reshape(tf.reduce_sum(cotangent, axes), shape)

    def conjugate(self, tensor: Any) -> Any:
        return tf.math.conj(tensor) if getattr(tensor, "dtype", tf.float32).is_complex else tensor

    def override(self, function: Any, gradients: Gradients) -> Any:
        from pullback.hosts.tensorflow.override import Overridden, Overriding

        overriding = functools.partial(Overriding, gradients, strict=function is None)
        return overriding() if function is None else Overridden(function, overriding)

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────

    def run(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str
    ) -> Any:
        try:
            if tf.executing_eagerly():
                return function(*args, **kwargs)
            return run.trace(function, args, kwargs, where)
        except run.ERRORS as error:
            run.explain(error, where)
            raise

    def apply(self, operation: Operation, tensors: list[Any]) -> list[Any]:
        if self.bypassed is not None and self.bypasses(operation):
            return operation.forward(tensors)[0]
        if not self.recorded:
            return public.apply(operation, tensors)
        return eager.apply(operation, tensors) if tf.executing_eagerly() else graph.apply(operation, tensors)

    def callback(self, foreign: Foreign, tensors: Sequence[Any], outputs: Sequence[Spec]) -> list[Any]:
        return callback.callback(foreign, tensors, outputs, recorded=self.recorded)

    def readable(self, tensor: Any) -> bool:
        return hasattr(tensor, "numpy") and tf.executing_eagerly()

    def recording(self, tensors: Sequence[Any]) -> bool:
        return self.recorded and self.bypassed is None and private.could_record()

    def idle(self, tensors: Sequence[Any]) -> bool:
        return (
            self.recorded and self.bypassed is None and tf.executing_eagerly() and not private.could_record()
        )

    def pullback(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Linear:
        inputs = list(inputs)
        # A tape inside an accumulator's own computation records nothing unless its state is set aside.
        aside = private.set_accumulators_aside if self.recorded else contextlib.nullcontext
        with aside(), tf.GradientTape(persistent=True) as tape:
            tape.watch(inputs)
            outputs = function(*inputs)

        def pull(cotangents: Sequence[Any]) -> list[Any]:
            zero = tf.UnconnectedGradients.ZERO
            with aside():
                return tape.gradient(outputs, inputs, list(cotangents), unconnected_gradients=zero)

        return pull

    loop = staticmethod(control.loop)
    repeat = staticmethod(control.repeat)
    require = staticmethod(control.require)


def _open(value: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Take one level of a structure apart that says itself how, as `tf.nest` does."""
    metadata, parts = value.__tf_flatten__()
    return list(parts), functools.partial(type(value).__tf_unflatten__, metadata)


HOST = TensorFlowHost()
