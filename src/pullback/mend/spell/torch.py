"""PyTorch's spellings."""

from __future__ import annotations

MODULES = {"torch": ""}
_SAME_NAME = (
    "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "square", "reciprocal",
    "sigmoid", "log1p", "expm1", "rsqrt", "erf", "digamma", "relu", "asin", "atan", "floor", "conj",
)  # fmt: skip
BARE = {
    "sum": "({e}).sum({axis})",
    "sum_kept": "({e}).sum({axis}, keepdim=True)",
    "sum_all": "({e}).sum()",
    "mean": "({e}).mean({axis})",
    "mean_kept": "({e}).mean({axis}, keepdim=True)",
    "mean_all": "({e}).mean()",
    "transpose": "({e}).transpose(-1, -2)",
    "positive": "(({e}) > 0).to(({e}).dtype)",
    "softmax": "({e}).softmax(-1)",
    "count": "{e}.numel()",
    "shape": "{e}.shape",
    "length": "{e}.shape[{axis}]",
    "reverse": "({e}).flip({axis})",
    "argsort": "({e}).argsort()",
    "accumulate": "{x}.index_put_({i}, {e}, accumulate=True)",
    **{
        name: f"({{e}}).{name}()"
        for name in ("exp", "log", "abs", "sign", "sqrt", "sin", "cos", "tanh", "conj")
    },
}
TABLE = {
    **BARE,
    **{name: f"{{m}}.{name}({{e}})" for name in _SAME_NAME},
    "bell": "{m}.exp(-{e} * {e})",
    "softplus": "{m}.nn.functional.softplus({e})",
    "where": "{m}.where({c}, {a}, {b})",
    "ones": "{m}.ones_like({e})",
    "no_nan": "{m}.where({b} == 0, 0, {a} / {m}.where({b} == 0, 1, {b}))",
    "equal": "({a} == {b}).to({a}.dtype)",
    "number": "({e}).to({x}.dtype)",
    "normal": "{m}.exp(-{e} * {e} / 2)",
    "lower": "{m}.tril({e})",
    "upper": "{m}.triu({e})",
    "eye": "{m}.eye(*{e}.shape[-2:], dtype={e}.dtype)",
}
