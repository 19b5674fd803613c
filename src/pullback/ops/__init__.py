"""Ready rules: one file each, with its derivation, its domain, its edges and where it is from.

They are written with `pb.namespace`: each runs on TensorFlow, JAX and PyTorch, and on NumPy for values.
"""

from pullback.ops.batch_norm import batch_norm
from pullback.ops.categorical_cross_entropy_from_logits import categorical_cross_entropy_from_logits
from pullback.ops.cholesky import cholesky
from pullback.ops.cumprod import cumprod
from pullback.ops.eigh import eigh
from pullback.ops.entropy import entropy
from pullback.ops.entropy_from_logits import entropy_from_logits
from pullback.ops.geglu import geglu
from pullback.ops.gelu import gelu
from pullback.ops.kl_divergence import kl_divergence
from pullback.ops.layer_norm import layer_norm
from pullback.ops.linear.cross_entropy import linear_cross_entropy
from pullback.ops.log_softmax import log_softmax
from pullback.ops.logdet import logdet
from pullback.ops.logsumexp import logsumexp
from pullback.ops.matrix_sqrt import matrix_sqrt
from pullback.ops.mish import mish
from pullback.ops.normalize import normalize
from pullback.ops.prod import prod
from pullback.ops.rms_norm import rms_norm
from pullback.ops.safe_norm import safe_norm
from pullback.ops.sigmoid import sigmoid
from pullback.ops.silu import silu
from pullback.ops.softmax import softmax
from pullback.ops.softplus import softplus
from pullback.ops.solve import solve
from pullback.ops.svd import svd
from pullback.ops.swiglu import swiglu

__all__ = [
    "batch_norm",
    "categorical_cross_entropy_from_logits",
    "cholesky",
    "cumprod",
    "eigh",
    "entropy",
    "entropy_from_logits",
    "geglu",
    "gelu",
    "kl_divergence",
    "layer_norm",
    "linear_cross_entropy",
    "log_softmax",
    "logdet",
    "logsumexp",
    "matrix_sqrt",
    "mish",
    "normalize",
    "prod",
    "rms_norm",
    "safe_norm",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "solve",
    "svd",
    "swiglu",
]
