"""Ready rules: one file each, with its derivation, its domain, its edges and where it is from.

They are written with `pb.namespace`: each runs on TensorFlow, JAX and PyTorch, and on NumPy for values.
"""

from pullback.ops.abs import abs
from pullback.ops.attention.call import attention
from pullback.ops.batch_norm import batch_norm
from pullback.ops.binary_cross_entropy import binary_cross_entropy_from_logits
from pullback.ops.categorical_cross_entropy_from_logits import categorical_cross_entropy_from_logits
from pullback.ops.ceil import ceil
from pullback.ops.cholesky import cholesky
from pullback.ops.clip import clip
from pullback.ops.cumprod import cumprod
from pullback.ops.eigh import eigh
from pullback.ops.entropy import entropy
from pullback.ops.entropy_from_logits import entropy_from_logits
from pullback.ops.expm1_over_x import expm1_over_x
from pullback.ops.floor import floor
from pullback.ops.focal_loss import focal_loss
from pullback.ops.geglu import geglu
from pullback.ops.gelu import gelu
from pullback.ops.huber import huber
from pullback.ops.kl_divergence import kl_divergence
from pullback.ops.layer_norm import layer_norm
from pullback.ops.linear.contrastive import contrastive
from pullback.ops.linear.cross_entropy import linear_cross_entropy
from pullback.ops.linear.distillation import linear_js_divergence, linear_kl_divergence
from pullback.ops.linear.log_probs import linear_log_probs
from pullback.ops.log1mexp import log1mexp
from pullback.ops.log1p import log1p
from pullback.ops.log_cosh import log_cosh
from pullback.ops.log_sigmoid import log_sigmoid
from pullback.ops.log_softmax import log_softmax
from pullback.ops.logaddexp import logaddexp
from pullback.ops.logdet import logdet
from pullback.ops.logit import logit
from pullback.ops.logsubexp import logsubexp
from pullback.ops.logsumexp import logsumexp
from pullback.ops.matrix_sqrt import matrix_sqrt
from pullback.ops.max import max
from pullback.ops.maximum import maximum
from pullback.ops.median import median
from pullback.ops.min import min
from pullback.ops.minimum import minimum
from pullback.ops.mish import mish
from pullback.ops.mlp import mlp
from pullback.ops.normalize import normalize
from pullback.ops.prod import prod
from pullback.ops.relu import relu
from pullback.ops.rms_norm import rms_norm
from pullback.ops.round import round
from pullback.ops.safe_arccos import safe_arccos
from pullback.ops.safe_arcsin import safe_arcsin
from pullback.ops.safe_divide import safe_divide
from pullback.ops.safe_norm import safe_norm
from pullback.ops.safe_power import safe_power
from pullback.ops.safe_sqrt import safe_sqrt
from pullback.ops.sigmoid import sigmoid
from pullback.ops.silu import silu
from pullback.ops.sinc import sinc
from pullback.ops.softmax import softmax
from pullback.ops.softplus import log1pexp, softplus
from pullback.ops.softplus_inverse import softplus_inverse
from pullback.ops.solve import solve
from pullback.ops.sort import sort
from pullback.ops.svd import svd
from pullback.ops.swiglu import swiglu
from pullback.ops.trunc import trunc
from pullback.ops.xlog1py import xlog1py
from pullback.ops.xlogy import xlogy

__all__ = [
    "abs",
    "attention",
    "batch_norm",
    "binary_cross_entropy_from_logits",
    "categorical_cross_entropy_from_logits",
    "ceil",
    "cholesky",
    "clip",
    "contrastive",
    "cumprod",
    "eigh",
    "entropy",
    "entropy_from_logits",
    "expm1_over_x",
    "floor",
    "focal_loss",
    "geglu",
    "gelu",
    "huber",
    "kl_divergence",
    "layer_norm",
    "linear_cross_entropy",
    "linear_js_divergence",
    "linear_kl_divergence",
    "linear_log_probs",
    "log1mexp",
    "log1p",
    "log1pexp",
    "log_cosh",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logdet",
    "logit",
    "logsubexp",
    "logsumexp",
    "matrix_sqrt",
    "max",
    "maximum",
    "median",
    "min",
    "minimum",
    "mish",
    "mlp",
    "normalize",
    "prod",
    "relu",
    "rms_norm",
    "round",
    "safe_arccos",
    "safe_arcsin",
    "safe_divide",
    "safe_norm",
    "safe_power",
    "safe_sqrt",
    "sigmoid",
    "silu",
    "sinc",
    "softmax",
    "softplus",
    "softplus_inverse",
    "solve",
    "sort",
    "svd",
    "swiglu",
    "trunc",
    "xlog1py",
    "xlogy",
]
