"""Ready rules: one file each, with its derivation, its domain, its edges and where it is from.

They are written with `pb.namespace`: each runs on TensorFlow, JAX and PyTorch, and on NumPy for values.
"""

from pullback.ops.linear.cross_entropy import linear_cross_entropy
from pullback.ops.sigmoid import sigmoid
from pullback.ops.softplus import softplus

__all__ = [
    "linear_cross_entropy",
    "sigmoid",
    "softplus",
]
