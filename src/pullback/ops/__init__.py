"""Ready rules: one file each, with its derivation, its domain, its edges and where it is from.

They are written with `pb.namespace`: each runs on TensorFlow, JAX and PyTorch, and on NumPy for values.
What is imported here is public: a new rule is one line.
"""

from inspect import ismodule as _is_module

from pullback.ops.abs import abs as abs
from pullback.ops.attention.call import attention as attention
from pullback.ops.batch_norm import batch_norm as batch_norm
from pullback.ops.binary_cross_entropy import (
    binary_cross_entropy_from_logits as binary_cross_entropy_from_logits,
)
from pullback.ops.categorical_cross_entropy_from_logits import (
    categorical_cross_entropy_from_logits as categorical_cross_entropy_from_logits,
)
from pullback.ops.ceil import ceil as ceil
from pullback.ops.cholesky import cholesky as cholesky
from pullback.ops.clip import clip as clip
from pullback.ops.cumprod import cumprod as cumprod
from pullback.ops.eigh import eigh as eigh
from pullback.ops.entropy import entropy as entropy
from pullback.ops.entropy_from_logits import entropy_from_logits as entropy_from_logits
from pullback.ops.expm1_over_x import expm1_over_x as expm1_over_x
from pullback.ops.floor import floor as floor
from pullback.ops.focal_loss import focal_loss as focal_loss
from pullback.ops.geglu import geglu as geglu
from pullback.ops.gelu import gelu as gelu
from pullback.ops.huber import huber as huber
from pullback.ops.kl_divergence import kl_divergence as kl_divergence
from pullback.ops.layer_norm import layer_norm as layer_norm
from pullback.ops.linear.contrastive import contrastive as contrastive
from pullback.ops.linear.cross_entropy import linear_cross_entropy as linear_cross_entropy
from pullback.ops.linear.distillation import linear_js_divergence as linear_js_divergence
from pullback.ops.linear.distillation import linear_kl_divergence as linear_kl_divergence
from pullback.ops.linear.log_probs import linear_log_probs as linear_log_probs
from pullback.ops.log1mexp import log1mexp as log1mexp
from pullback.ops.log1p import log1p as log1p
from pullback.ops.log_cosh import log_cosh as log_cosh
from pullback.ops.log_sigmoid import log_sigmoid as log_sigmoid
from pullback.ops.log_softmax import log_softmax as log_softmax
from pullback.ops.logaddexp import logaddexp as logaddexp
from pullback.ops.logdet import logdet as logdet
from pullback.ops.logit import logit as logit
from pullback.ops.logsubexp import logsubexp as logsubexp
from pullback.ops.logsumexp import logsumexp as logsumexp
from pullback.ops.matrix_sqrt import matrix_sqrt as matrix_sqrt
from pullback.ops.max import max as max
from pullback.ops.maximum import maximum as maximum
from pullback.ops.median import median as median
from pullback.ops.min import min as min
from pullback.ops.minimum import minimum as minimum
from pullback.ops.mish import mish as mish
from pullback.ops.mlp import mlp as mlp
from pullback.ops.normalize import normalize as normalize
from pullback.ops.prod import prod as prod
from pullback.ops.relu import relu as relu
from pullback.ops.rms_norm import rms_norm as rms_norm
from pullback.ops.round import round as round
from pullback.ops.safe_arccos import safe_arccos as safe_arccos
from pullback.ops.safe_arcsin import safe_arcsin as safe_arcsin
from pullback.ops.safe_divide import safe_divide as safe_divide
from pullback.ops.safe_norm import safe_norm as safe_norm
from pullback.ops.safe_power import safe_power as safe_power
from pullback.ops.safe_sqrt import safe_sqrt as safe_sqrt
from pullback.ops.sigmoid import sigmoid as sigmoid
from pullback.ops.silu import silu as silu
from pullback.ops.sinc import sinc as sinc
from pullback.ops.softmax import softmax as softmax
from pullback.ops.softplus import log1pexp as log1pexp
from pullback.ops.softplus import softplus as softplus
from pullback.ops.softplus_inverse import softplus_inverse as softplus_inverse
from pullback.ops.solve import solve as solve
from pullback.ops.sort import sort as sort
from pullback.ops.svd import svd as svd
from pullback.ops.swiglu import swiglu as swiglu
from pullback.ops.trunc import trunc as trunc
from pullback.ops.xlog1py import xlog1py as xlog1py
from pullback.ops.xlogy import xlogy as xlogy

__all__ = sorted(name for name, value in globals().items() if name[0] != "_" and not _is_module(value))
