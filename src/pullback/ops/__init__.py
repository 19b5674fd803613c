"""Ready rules: one file each, with its derivation, its domain, its edges and where it is from.

They are written with `pb.namespace`: each runs on TensorFlow, JAX and PyTorch, and on NumPy for values.
"""

from pullback.ops.linear.contrastive import contrastive
from pullback.ops.linear.cross_entropy import linear_cross_entropy
from pullback.ops.linear.distillation import linear_js_divergence, linear_kl_divergence
from pullback.ops.linear.log_probs import linear_log_probs
from pullback.ops.sigmoid import sigmoid
from pullback.ops.softplus import softplus

__all__ = [
    "contrastive",
    "linear_cross_entropy",
    "linear_js_divergence",
    "linear_kl_divergence",
    "linear_log_probs",
    "sigmoid",
    "softplus",
]
