"""The array API in TensorFlow: a thin table of its functions, for rule bodies that name no framework.

A name and its arguments mean here what they mean in the standard (data-apis.org/array-api), down to axes that
are negative, tuples or None. A function is made of operations that TensorFlow differentiates rightly at every
order; where it has none such, the name is not in the table, and asking for it says what to use.
"""

import math as _math
from inspect import ismodule as _is_module
from typing import Any as _Any

import tensorflow as _tf

from pullback.hosts.tensorflow.namespace import linalg
from pullback.hosts.tensorflow.namespace.creation import (
    arange,
    asarray,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from pullback.hosts.tensorflow.namespace.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from pullback.hosts.tensorflow.namespace.linalg import (
    matmul,
    matrix_transpose,
    tensordot,
    vecdot,
)
from pullback.hosts.tensorflow.namespace.promotion import (
    astype,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from pullback.hosts.tensorflow.namespace.reductions import (
    all,
    any,
    count_nonzero,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from pullback.hosts.tensorflow.namespace.search import (
    argmax,
    argmin,
    argsort,
    searchsorted,
    sort,
    take,
    take_along_axis,
)
from pullback.hosts.tensorflow.namespace.shapes import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)

__array_api_version__ = "2023.12"

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None

bool = _tf.bool
int8, int16, int32, int64 = _tf.int8, _tf.int16, _tf.int32, _tf.int64
uint8, uint16, uint32, uint64 = _tf.uint8, _tf.uint16, _tf.uint32, _tf.uint64
bfloat16, float16, float32, float64 = _tf.bfloat16, _tf.float16, _tf.float32, _tf.float64
complex64, complex128 = _tf.complex64, _tf.complex128

__all__ = [
    name for name, value in globals().items() if name[0] != "_" and (value is linalg or not _is_module(value))
]

_ELSEWHERE = {
    "cumulative_prod": "the gradient of tf.math.cumprod is wrong where an element is zero; "
    "xp.exp(xp.cumulative_sum(xp.log(x))) is right for positive x",
    "empty": "TensorFlow has no memory without values; use xp.zeros",
    "empty_like": "TensorFlow has no memory without values; use xp.zeros_like",
    "fft": "use tf.signal.fft and its relatives",
    "from_dlpack": "use tf.experimental.dlpack.from_dlpack",
    "nextafter": "it has no gradient; use tf.math.nextafter",
    "nonzero": "the shape of its result depends on values; use tf.where(x)",
    "unique_all": "the shape of its result depends on values; use tf.unique_with_counts",
    "unique_counts": "the shape of its result depends on values; use tf.unique_with_counts",
    "unique_inverse": "the shape of its result depends on values; use tf.unique",
    "unique_values": "the shape of its result depends on values; use tf.unique",
}


def __getattr__(name: str) -> _Any:
    """Say what to use in the place of a name that is not here."""
    why = _ELSEWHERE.get(
        name, "it is no name of the array API; write it in names that are, or call TensorFlow"
    )
    raise AttributeError(f"the namespace of TensorFlow tensors has no {name!r}: {why}")
