"""JAX's spellings: those of `pb.namespace`, and what `jax.numpy` has beside them."""

from __future__ import annotations

from pullback.mend.spell.namespace import BARE as BARE
from pullback.mend.spell.namespace import TABLE as NEUTRAL

MODULES = {"jax.numpy": "", "jax": ".numpy"}
TABLE = {
    **NEUTRAL,
    "asin": "{m}.arcsin({e})",
    "atan": "{m}.arctan({e})",
    "reciprocal": "{m}.reciprocal({e})",
    "relu": "{m}.maximum({e}, 0)",
    "positive": "({e} > 0)",
    "transpose": "{m}.swapaxes({e}, -1, -2)",
    "no_nan": "{m}.where({b} == 0, 0, {a} / {m}.where({b} == 0, 1, {b}))",
    "count": "{e}.size",
    "reverse": "{m}.flip({e}, {axis})",
    "equal": "({a} == {b})",
    "number": "({e})",
    "eye": "{m}.eye(*{e}.shape[-2:])",
}
