"""The array API in TensorFlow: a thin table of its functions, for rule bodies that name no framework.

A name and its arguments mean here what they mean in the standard (data-apis.org/array-api), down to axes that
are negative, tuples or None. A function is made of operations that TensorFlow differentiates rightly at every
order; where it has none such, the name is not in the table, and asking for it says what to use.
"""

import math as _math
from inspect import ismodule as _is_module
from typing import Any as _Any

import tensorflow as _tf

from pullback.hosts.tensorflow.namespace import creation as _creation
from pullback.hosts.tensorflow.namespace import elementwise as _elementwise
from pullback.hosts.tensorflow.namespace import linalg
from pullback.hosts.tensorflow.namespace import reductions as _reductions
from pullback.hosts.tensorflow.namespace import search as _search
from pullback.hosts.tensorflow.namespace import shapes as _shapes
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

# What these files hold is in the table; what they import is not.
_IMPORTED = ("Any", "annotations", "both", "is_integral", "pair")

for _file in (_creation, _elementwise, _reductions, _search, _shapes):
    for _name, _value in vars(_file).items():
        if _name[0] != "_" and _name not in _IMPORTED and not _is_module(_value):
            globals()[_name] = _value

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
