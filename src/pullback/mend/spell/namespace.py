"""The spellings of `pb.namespace`, which every host understands."""

from __future__ import annotations

from pullback.hosts import SUPPORTED

# What `pb.namespace` gives, by the name of the module.
MODULES = dict.fromkeys((*(framework.namespace for framework in SUPPORTED.values()), "numpy"), "")
_SAME_NAME = (
    "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "square", "log1p",
    "expm1", "asin", "atan", "floor", "conj",
)  # fmt: skip
TABLE = {
    **{name: f"{{m}}.{name}({{e}})" for name in _SAME_NAME},
    "reciprocal": "1 / {e}",
    "rsqrt": "1 / {m}.sqrt({e})",
    "sigmoid": "1 / (1 + {m}.exp(-{e}))",
    "relu": "{m}.where({e} > 0, {e}, 0 * {e})",
    "positive": "{m}.where({e} > 0, 1 + 0 * {e}, 0 * {e})",
    "bell": "{m}.exp(-{e} * {e})",
    "sum": "{m}.sum({e}, axis={axis})",
    "sum_kept": "{m}.sum({e}, axis={axis}, keepdims=True)",
    "sum_all": "{m}.sum({e})",
    "mean": "{m}.mean({e}, axis={axis})",
    "mean_kept": "{m}.mean({e}, axis={axis}, keepdims=True)",
    "mean_all": "{m}.mean({e})",
    "transpose": "{m}.matrix_transpose({e})",
    "where": "{m}.where({c}, {a}, {b})",
    "ones": "{m}.ones_like({e})",
    "no_nan": "{m}.where({b} == 0, 0 * {a}, {a} / {m}.where({b} == 0, 1 + 0 * {b}, {b}))",
    "shape": "{e}.shape",
    "length": "{e}.shape[{axis}]",
    "reverse": "{m}.flip({e}, axis={axis})",
    "argsort": "{m}.argsort({e})",
    "equal": "{m}.astype({a} == {b}, {a}.dtype)",
    "number": "{m}.astype({e}, {x}.dtype)",
    "normal": "{m}.exp(-{e} * {e} / 2)",
    "lower": "{m}.tril({e})",
    "upper": "{m}.triu({e})",
    "eye": "{m}.eye(*{e}.shape[-2:], dtype={e}.dtype)",
}
# What NumPy alone can do.
NUMPY = {**TABLE, "accumulate": "{m}.add.at({x}, {i}, {e})"}
# What arrays can do by themselves, where no module of arrays has a name.
BARE = {
    "sum": "({e}).sum(axis={axis})",
    "sum_kept": "({e}).sum(axis={axis}, keepdims=True)",
    "sum_all": "({e}).sum()",
    "mean": "({e}).mean(axis={axis})",
    "mean_kept": "({e}).mean(axis={axis}, keepdims=True)",
    "mean_all": "({e}).mean()",
    "transpose": "({e}).swapaxes(-1, -2)",
    "conj": "({e}).conj()",
    "abs": "abs({e})",
    "square": "({e})**2",
    "reciprocal": "1 / ({e})",
    "positive": "(({e}) > 0)",
    "count": "{e}.size",
    "shape": "{e}.shape",
    "length": "{e}.shape[{axis}]",
}
