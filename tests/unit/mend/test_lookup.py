"""Values are found among expressions and their products, and what is linear in a cotangent as such alone."""

import ast

import numpy as np

from pullback.mend.edit import parsed
from pullback.mend.lookup import Entry, Lookup

RNG = np.random.default_rng(0)
X, Y, D, E = RNG.normal(size=(4, 5))
# Two moments at one point, which differ in the cotangent, and one elsewhere.
FAR = RNG.normal(size=(3, 5))
NAMES = {"x": (X, X, FAR[0]), "y": (Y, Y, FAR[1]), "d": (D, E, FAR[2])}
LOOKUP = Lookup([Entry(parsed(n), a, 1) for n, a in NAMES.items()], (0, 1))


def texts(function):
    values = [function(*parts) for parts in zip(*NAMES.values())]
    (hits,) = LOOKUP.lookup([values], 1e-9)
    return [ast.unparse(hit.node) for hit in hits]


def test_a_product_and_a_quotient_are_found_up_to_a_constant():
    assert texts(lambda x, y, d: 2 * x) == ["2 * x"]
    assert texts(lambda x, y, d: -x * y) == ["-(x * y)"]
    assert texts(lambda x, y, d: x / y / 3) == ["x / y / 3"]
    assert texts(lambda x, y, d: 0 * x + 7.3) == []


def test_what_is_linear_in_the_cotangent_has_it_once():
    assert texts(lambda x, y, d: d * x) == ["d * x"]
    assert texts(lambda x, y, d: d / y) == ["d / y"]
    assert texts(lambda x, y, d: d * d) == []
    assert texts(lambda x, y, d: x / d) == []


def test_what_is_unknown_may_be_anything():
    values = [np.where(np.arange(5) < 2, np.nan, d * y) for x, y, d in zip(*NAMES.values())]
    (hits,) = LOOKUP.lookup([values], 1e-9)
    assert [ast.unparse(hit.node) for hit in hits] == ["d * y"]
