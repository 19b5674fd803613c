"""Whether a pullback is linear in its cotangents: proved from its operations, or else measured in every call.

The proof listens while the pullback runs. Cotangents move through operations that are linear in them (a sum,
a product with something that does not move) and meet no other, so the whole is linear, in this very call. A
pullback with other operations (a clip, a branch, a function of the user's) may still be linear. It is asked
at random cotangents: in eager mode at once, in a graph when it runs, where a wrong tangent becomes an error,
and NaN under XLA, which drops assertions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.hosts import linear, refusals
from pullback.hosts.operation import Operation, Pullback
from pullback.hosts.tensorflow import private
from pullback.hosts.tensorflow.captures import differentiable
from pullback.hosts.tensorflow.effects import is_jvp
from pullback.hosts.tensorflow.transpose import Transpose


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Linear in all of their floating inputs together: each of these moves with the cotangents, or is zero.
_SUMS = _names(
    "Add AddV2 AddN AvgPool AvgPool3D AvgPoolGrad BatchToSpaceND BiasAdd BiasAddGrad BroadcastTo Cast "
    "Complex Concat ConcatV2 Conj ConjugateTranspose Cumsum DepthToSpace Diag DiagPart DynamicPartition "
    "DynamicStitch EnsureShape ExpandDims FFT FFT2D FFT3D Gather GatherNd GatherV2 IFFT IFFT2D IFFT3D IRFFT "
    "IRFFT2D IRFFT3D Identity IdentityN Imag MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 "
    "MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 Mean MirrorPad "
    "MirrorPadGrad Neg Pack Pad PadV2 RFFT RFFT2D RFFT3D Real Reshape Reverse ReverseSequence ReverseV2 Roll "
    "ScatterNd SegmentMean SegmentSum Select SelectV2 Slice SpaceToBatchND SpaceToDepth Split SplitV Squeeze "
    "StridedSlice StridedSliceGrad Sub Sum TensorScatterAdd TensorScatterSub Tile Transpose Unpack "
    "UnsortedSegmentSum"
)
# Linear in each of their floating inputs alone: exactly one moves.
_PRODUCTS = _names(
    "BatchMatMul BatchMatMulV2 BatchMatMulV3 Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D "
    "Conv3DBackpropFilterV2 Conv3DBackpropInputV2 Cross DepthwiseConv2dNative "
    "DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Einsum MatMul Mul"
)
# Linear in one input, which is the only one that may move.
_PLACES = {
    **dict.fromkeys(_names("Div DivNoNan MulNoNan RealDiv Xdivy"), 0),
    **dict.fromkeys(_names("EluGrad LeakyReluGrad Relu6Grad ReluGrad SeluGrad SoftplusGrad SoftsignGrad"), 0),
    **dict.fromkeys(_names("InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad"), 1),
    **dict.fromkeys(_names("MatrixSolve MatrixTriangularSolve"), 1),
    "MaxPoolGrad": 2,
}
# These ask for the shape and not for the values.
_SHAPES = _names("OnesLike Rank Shape ShapeN Size ZerosLike")


class Proof:
    """Follow cotangents through the operations of a pullback, while it runs or is traced."""

    def __init__(self, cotangents: Sequence[Any]) -> None:
        self.holds = True
        self._moved = {cotangent._id for cotangent in cotangents}

    def __enter__(self) -> Proof:
        private.add_op_callback(self._follow)
        return self

    def __exit__(self, *_: Any) -> None:
        private.remove_op_callback(self._follow)

    def reaches(self, results: Sequence[Any]) -> bool:
        """Tell whether the proof holds for these results: what does not move must be zero."""
        for result in results:
            if isinstance(result, tf.IndexedSlices):
                result = result.values
            self.holds = self.holds and (result is None or self._moves(result) or _is_zero(result))
        return self.holds

    def _follow(self, op_type: str | bytes, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any) -> Any:
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        if is_jvp(name):
            return outputs
        if self.holds and name not in _SHAPES and any(map(self._moves, inputs)):
            self.holds = self._linear(name, inputs) and all(map(differentiable, outputs))
            self._moved.update(output._id for output in outputs)
        return outputs

    def _moves(self, tensor: Any) -> bool:
        return tensor._id in self._moved

    def _linear(self, name: str, inputs: Sequence[Any]) -> bool:
        if name in _SUMS:
            return all(self._moves(x) or not differentiable(x) or _is_zero(x) for x in inputs)
        moving = [i for i, x in enumerate(inputs) if self._moves(x)]
        return len(moving) == 1 and (name in _PRODUCTS or _PLACES.get(name) == moving[0])


def _is_zero(tensor: Any) -> bool:
    if not hasattr(tensor, "numpy") and tensor.op.type == "ZerosLike":
        return True
    value = tf.get_static_value(tensor)
    return value is not None and not np.any(value)


def base(zeros: Sequence[Any]) -> Sequence[Any]:
    """Give cotangents at which to run a pullback that is transposed; any will do if it is linear.

    Not zeros in eager mode: whatever code outside of TensorFlow makes of zeros may be zero.
    """
    return _drawn(zeros, 9, 1.0) if tf.executing_eagerly() else zeros


def confirm(operation: Operation, pull: Pullback, variables: Sequence[Any]) -> Any:
    """Ask a pullback that nothing is proved of: refuse it now, or give what tells when the graph runs."""
    linear_here, transposable = _asked(pull, variables)
    if tf.executing_eagerly():
        if not linear_here:
            raise refusals.forward_mode(operation, linear.NOT_LINEAR)
        if not transposable:
            raise refusals.forward_mode(operation, linear.CUT_OFF)
        return None
    said = [str(refusals.forward_mode(operation, found)) for found in (linear.NOT_LINEAR, linear.CUT_OFF)]
    asserts = [
        tf.debugging.Assert(linear_here, said[:1]),
        tf.debugging.Assert(transposable | ~linear_here, said[1:]),
    ]
    with tf.control_dependencies(asserts):
        return tf.where(linear_here & transposable, 1.0, float("nan"))


def trusted(tensor: Any, factor: Any) -> Any:
    """Let a tensor through if what `confirm` gave holds when the graph runs."""
    if factor is None or tensor is None or not differentiable(tensor):
        return tensor
    return tensor * tf.cast(factor, tensor.dtype)


def _asked(pull: Pullback, variables: Sequence[Any]) -> tuple[Any, Any]:
    """Compare P(2a − 3b) with 2P(a) − 3P(b) at three sizes, and ⟨P(c), t⟩ with ⟨c, Pᵀt⟩."""
    zeros = pull.zeros()

    def pulled(cotangents: list[Any]) -> list[Any]:
        got = pull(cotangents, variables)
        return [None if g is None else tf.convert_to_tensor(g) for g in got.inputs + got.variables]

    c = _drawn(zeros, 7, 1.0)
    values, along, back = _transposed(pulled, c)
    allowed = linear.tolerance([x.dtype.name for x in (*zeros, *values)])
    agrees = [tf.constant(True)]
    for k, scale in enumerate(linear.SCALES):
        a, b = (_drawn(zeros, 2 * k + i, scale) for i in range(2))
        mixed = [2 * x - 3 * y if differentiable(x) else x for x, y in zip(a, b)]
        with private.stop_recording():  # numbers that nobody differentiates: no rule inside is asked again
            found = [pulled(cotangents) for cotangents in (a, b, mixed)]
        for ga, gb, gm in zip(*found):
            if ga is not None and gb is not None and gm is not None:
                ga, gb, gm = map(_double, (ga, gb, gm))
                agrees.append(_close(2 * ga - 3 * gb, gm, tf.abs(2 * ga) + tf.abs(3 * gb), allowed))
    # The inner product of TensorFlow's conventions is Re Σ conj(a)·b, on both sides.
    left = [tf.math.real(tf.math.conj(_double(g)) * _double(t)) for g, t in zip(values, along)]
    right = [
        tf.math.real(tf.math.conj(_double(x)) * _double(d)) for x, d in zip(c, back) if differentiable(x)
    ]
    total = [tf.add_n([tf.reduce_sum(part) for part in side]) if side else 0.0 for side in (left, right)]
    sizes = tf.add_n([tf.reduce_sum(tf.abs(part)) for part in left + right])
    return tf.reduce_all(tf.stack(agrees)), _close(total[0], total[1], sizes, allowed)


def _transposed(pulled: Callable[[list[Any]], list[Any]], c: list[Any]) -> tuple[list[Any], ...]:
    """Pull c back, and push what was drawn through: the results, what was drawn, and where it arrives."""
    with Transpose(c, alone=True) as transpose:
        values = [g for g in pulled(c) if g is not None]
        along = _drawn(values, 8, 1.0)
        return values, along, transpose.push(values, along)


def _close(a: Any, b: Any, sizes: Any, allowed: float) -> Any:
    finite = tf.math.is_finite(sizes) & tf.math.is_finite(tf.abs(a)) & tf.math.is_finite(tf.abs(b))
    largest = tf.reduce_max(tf.where(finite, sizes, tf.zeros_like(sizes)))
    return tf.reduce_all(~finite | (tf.abs(a - b) <= allowed * largest))


def _drawn(likes: Sequence[Any], seed: int, scale: float) -> list[Any]:
    """Draw numbers of both signs and of one size; the same ones in every call."""
    drawn = []
    for i, like in enumerate(likes):
        if differentiable(like):
            numbers = tf.random.stateless_uniform(tf.shape(like), [seed, i], -1.0, 1.0)
            like = tf.cast(scale * (numbers + 0.5 * tf.where(numbers < 0, -1.0, 1.0)), like.dtype)
        drawn.append(like)
    return drawn


def _double(tensor: Any) -> Any:
    return tf.cast(tensor, tf.complex128)
