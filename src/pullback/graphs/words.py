"""What operations do, in one word for every host: by it a lost gradient is explained.

The names of hosts stand here and nowhere else in this room. An operation without a word is explained by what
was measured at it.
"""

from __future__ import annotations

import re

_SAME = {
    "stop": "StopGradient stop_gradient detach PreventGradient data",
    "rebuild": "tensor new_tensor",
    "leave": "item numpy tolist __array__ float int bool PyFunc PyFuncStateless EagerPyFunc "
    "pure_callback io_callback",
    "store": "AssignVariableOp AssignAddVariableOp AssignSubVariableOp ResourceScatterUpdate "
    "ResourceScatterAdd ResourceScatterSub ResourceScatterNdUpdate ResourceScatterNdAdd "
    "ResourceStridedSliceAssign",
    "where": "Select SelectV2 select_n where index_put masked_fill",
    "round": "Round Rint round",
    "sign": "Sign sign sgn",
    "floor": "Floor floor Ceil ceil trunc FloorDiv FloorMod floor_divide",
    "argmax": "ArgMax ArgMin argmax argmin argsort OneHot one_hot argpartition searchsorted bucketize",
    "compare": "Greater GreaterEqual Less LessEqual Equal NotEqual gt ge lt le eq ne greater less "
    "logical_and logical_or isnan isfinite heaviside",
    "relu": "Relu Relu6 relu relu6 hardtanh threshold max Maximum maximum clamp_min leaky_relu Elu elu",
    "clamp": "ClipByValue clamp clip min Minimum minimum clamp_max",
    "sigmoid": "Sigmoid logistic sigmoid",
    "tanh": "Tanh tanh",
    "softmax": "Softmax softmax LogSoftmax log_softmax",
    "sqrt": "Sqrt sqrt Rsqrt rsqrt",
    "log": "Log log Log1p log1p xlogy Xlogy log2 log10",
    "divide": "RealDiv div DivNoNan Reciprocal reciprocal Inv divide true_divide truediv Xdivy",
    "pow": "Pow pow integer_pow square_root",
    "norm": "norm linalg_vector_norm EuclideanNorm linalg_norm std cdist pdist Abs abs",
    "exp": "Exp exp Expm1 expm1",
    "multiply": "Mul mul multiply MatMul matmul BatchMatMulV2 dot_general mm bmm addmm linear einsum Einsum",
    "cast": "Cast convert_element_type to _to_copy type int long to_copy",
    "acos": "Acos acos Asin asin arccos arcsin Atanh atanh acosh Acosh",
    "loop": "While StatelessWhile while scan",
    "branch": "If StatelessIf Case StatelessCase cond",
}  # fmt: skip
_WORDS = {name: word for word, names in _SAME.items() for name in names.split()}
# what stands for a statement or a function that a user writes in other words
_WRITTEN = {"While": "loop", "StatelessWhile": "loop", "If": "branch", "StatelessIf": "branch"}
_WRITTEN |= {"Case": "branch", "StatelessCase": "branch"}
_WRITTEN |= {"PyFunc": "numpy_function", "PyFuncStateless": "numpy_function", "EagerPyFunc": "py_function"}
_AUTOGRAD = re.compile(r"Backward\d*$")


def does(operation: str) -> str:
    """Give the word of an operation of any host; nothing where none is known."""
    bare = _AUTOGRAD.sub("", operation)
    bare = bare if bare == operation else bare[:1].lower() + bare[1:]
    found = _WORDS.get(bare) or _WORDS.get(_snake(bare))
    return found or ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def shown(operation: str) -> str:
    """Give an operation's name as a reader knows it: `MulBackward0` is the multiplication of the forward."""
    bare = _AUTOGRAD.sub("", operation)
    return _WRITTEN.get(operation, operation) if bare == operation else _snake(bare)
