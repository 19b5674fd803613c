"""Ready rules: one file each, with its derivation, its domain, its edges and where it is from.

They are written with `pb.namespace`: each runs on TensorFlow, JAX and PyTorch, and on NumPy for values.
"""

from pullback.ops.abs import abs
from pullback.ops.binary_cross_entropy import binary_cross_entropy_from_logits
from pullback.ops.ceil import ceil
from pullback.ops.clip import clip
from pullback.ops.expm1_over_x import expm1_over_x
from pullback.ops.floor import floor
from pullback.ops.focal_loss import focal_loss
from pullback.ops.huber import huber
from pullback.ops.log1mexp import log1mexp
from pullback.ops.log1p import log1p
from pullback.ops.log_cosh import log_cosh
from pullback.ops.log_sigmoid import log_sigmoid
from pullback.ops.logaddexp import logaddexp
from pullback.ops.logit import logit
from pullback.ops.logsubexp import logsubexp
from pullback.ops.max import max
from pullback.ops.maximum import maximum
from pullback.ops.median import median
from pullback.ops.min import min
from pullback.ops.minimum import minimum
from pullback.ops.relu import relu
from pullback.ops.round import round
from pullback.ops.safe_arccos import safe_arccos
from pullback.ops.safe_arcsin import safe_arcsin
from pullback.ops.safe_divide import safe_divide
from pullback.ops.safe_power import safe_power
from pullback.ops.safe_sqrt import safe_sqrt
from pullback.ops.sigmoid import sigmoid
from pullback.ops.sinc import sinc
from pullback.ops.softplus import log1pexp, softplus
from pullback.ops.softplus_inverse import softplus_inverse
from pullback.ops.sort import sort
from pullback.ops.trunc import trunc
from pullback.ops.xlog1py import xlog1py
from pullback.ops.xlogy import xlogy

__all__ = [
    "abs",
    "binary_cross_entropy_from_logits",
    "ceil",
    "clip",
    "expm1_over_x",
    "floor",
    "focal_loss",
    "huber",
    "log1mexp",
    "log1p",
    "log1pexp",
    "log_cosh",
    "log_sigmoid",
    "logaddexp",
    "logit",
    "logsubexp",
    "max",
    "maximum",
    "median",
    "min",
    "minimum",
    "relu",
    "round",
    "safe_arccos",
    "safe_arcsin",
    "safe_divide",
    "safe_power",
    "safe_sqrt",
    "sigmoid",
    "sinc",
    "softplus",
    "softplus_inverse",
    "sort",
    "trunc",
    "xlog1py",
    "xlogy",
]
