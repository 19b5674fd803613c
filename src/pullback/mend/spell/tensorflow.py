"""TensorFlow's spellings."""

from __future__ import annotations

MODULES = {"tensorflow": ""}
_MATH = ("log", "log1p", "expm1", "erf", "digamma", "softplus", "rsqrt", "reciprocal")
_SAME_NAME = (
    "exp", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "square", "sigmoid", "asin",
    "atan", "floor",
)  # fmt: skip
TABLE = {
    **{name: f"{{m}}.math.{name}({{e}})" for name in _MATH},
    **{name: f"{{m}}.{name}({{e}})" for name in _SAME_NAME},
    "relu": "{m}.nn.relu({e})",
    "softmax": "{m}.nn.softmax({e})",
    "positive": "{m}.cast({e} > 0, {e}.dtype)",
    "bell": "{m}.exp(-{e} * {e})",
    "sum": "{m}.reduce_sum({e}, {axis})",
    "sum_kept": "{m}.reduce_sum({e}, {axis}, keepdims=True)",
    "sum_all": "{m}.reduce_sum({e})",
    "mean": "{m}.reduce_mean({e}, {axis})",
    "mean_kept": "{m}.reduce_mean({e}, {axis}, keepdims=True)",
    "mean_all": "{m}.reduce_mean({e})",
    "transpose": "{m}.linalg.matrix_transpose({e})",
    "conj": "{m}.math.conj({e})",
    "where": "{m}.where({c}, {a}, {b})",
    "ones": "{m}.ones_like({e})",
    "no_nan": "{m}.math.divide_no_nan({a}, {b})",
    "count": "{m}.cast({m}.size({e}), {e}.dtype)",
    "length": "{m}.cast({m}.shape({e})[{axis}], {e}.dtype)",
    "shape": "{m}.shape({e})",
    "entries": "{m}.size({e})",  # an integer, which a program has cast itself
    "extent": "{m}.shape({e})[{axis}]",
    "reverse": "{m}.reverse({e}, [{axis}])",
    "argsort": "{m}.argsort({e})",
    "equal": "{m}.cast({a} == {b}, {a}.dtype)",
    "number": "{m}.cast({e}, {x}.dtype)",
    "normal": "{m}.exp(-{e} * {e} / 2)",
    "lower": "{m}.linalg.band_part({e}, -1, 0)",
    "upper": "{m}.linalg.band_part({e}, 0, -1)",
    "eye": "{m}.eye(*{e}.shape[-2:], dtype={e}.dtype)",
}
BARE: dict[str, str] = {}
