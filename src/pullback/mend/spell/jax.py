"""JAX's spellings."""

from __future__ import annotations

from pullback.mend.spell.namespace import BARE as BARE

MODULES = ("jax.numpy", "jax")
PREFIX = {"jax": ".numpy"}
_PLAIN = (
    "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "square", "log1p",
    "expm1", "floor", "reciprocal",
)  # fmt: skip
TABLE = {
    **{name: f"{{m}}.{name}({{e}})" for name in _PLAIN},
    "asin": "{m}.arcsin({e})",
    "atan": "{m}.arctan({e})",
    "rsqrt": "1 / {m}.sqrt({e})",
    "sigmoid": "1 / (1 + {m}.exp(-{e}))",
    "relu": "{m}.maximum({e}, 0)",
    "positive": "({e} > 0)",
    "bell": "{m}.exp(-{e} * {e})",
    "sum": "{m}.sum({e}, axis={axis})",
    "sum_kept": "{m}.sum({e}, axis={axis}, keepdims=True)",
    "sum_all": "{m}.sum({e})",
    "mean": "{m}.mean({e}, axis={axis})",
    "mean_kept": "{m}.mean({e}, axis={axis}, keepdims=True)",
    "mean_all": "{m}.mean({e})",
    "transpose": "{m}.swapaxes({e}, -1, -2)",
    "conj": "{m}.conj({e})",
    "real": "{m}.real({e})",
    "where": "{m}.where({c}, {a}, {b})",
    "zeros": "{m}.zeros_like({e})",
    "ones": "{m}.ones_like({e})",
    "no_nan": "{m}.where({b} == 0, 0, {a} / {m}.where({b} == 0, 1, {b}))",
    "count": "{e}.size",
    "shape": "{e}.shape",
    "length": "{e}.shape[{axis}]",
    "reverse": "{m}.flip({e}, {axis})",
    "reshape": "{m}.reshape({e}, {x}.shape)",
    "broadcast": "{m}.broadcast_to({e}, {x}.shape)",
    "cast": "({e}).astype({x}.dtype)",
    "concat": "{m}.concatenate([{a}, {b}], {axis})",
    "minimum": "{m}.minimum({a}, {b})",
    "maximum": "{m}.maximum({a}, {b})",
    "argsort": "{m}.argsort({e})",
    "equal": "({a} == {b})",
    "number": "({e})",
    "normal": "{m}.exp(-{e} * {e} / 2)",
    "lower": "{m}.tril({e})",
    "upper": "{m}.triu({e})",
    "eye": "{m}.eye(*{e}.shape[-2:])",
}
