"""Taking closures apart: what is in them, and the same function again with other values."""

import functools
from collections import defaultdict, namedtuple

import numpy as np
import pytest

from pullback.hosts.closures import Taker

Pair = namedtuple("Pair", "left right")
OLD, NEW = np.array(2.0), np.array(5.0)


def is_tensor(value):
    return isinstance(value, np.ndarray)


def by_cell():
    kept = OLD
    return lambda dy: dy * kept


def by_default():
    def grad(dy, kept=OLD, *, name="grad"):
        return dy * kept

    return grad


def by_keyword():
    def grad(dy, *, kept=OLD):
        return dy * kept

    return grad


def by_list():
    kept = [1, {"deep": (OLD, "constant")}]
    return lambda dy: dy * kept[1]["deep"][0]


def by_named_tuple():
    kept = Pair(OLD, None)
    return lambda dy: dy * kept.left


def by_default_dict():
    kept = defaultdict(list, kept=OLD)
    return lambda dy: dy * kept["kept"] + len(kept["missing"])


def by_function():
    kept = OLD

    def inner(dy):
        return dy * kept

    return lambda dy: inner(dy)


def by_partial():
    return functools.partial(lambda kept, dy: dy * kept, OLD)


BODIES = [
    by_cell,
    by_default,
    by_keyword,
    by_list,
    by_named_tuple,
    by_default_dict,
    by_function,
    by_partial,
]


@pytest.mark.parametrize("body", BODIES)
def test_a_grad_is_built_again_of_another_tensor(body):
    taker = Taker(is_tensor, body)
    build = taker.grad(body())
    assert [id(tensor) for tensor in taker.saved] == [id(OLD)]
    assert build([NEW])(3.0) == 15
    assert build([OLD])(3.0) == 6


@pytest.mark.parametrize("body", BODIES)
def test_two_runs_have_the_same_paths(body):
    first, second = Taker(is_tensor, body), Taker(is_tensor, body)
    first.grad(body())
    second.grad(body())
    assert first.places == second.places
    assert first.places
    assert first.rest.keys() == second.rest.keys()


def test_a_tensor_that_is_given_or_stands_twice_is_listed_once():
    x, e = np.array(1.0), np.array(2.0)
    both = [x, e]
    taker = Taker(is_tensor, None, [x])
    taker.grad(lambda dy: dy * x * e * both[1])
    assert [id(tensor) for tensor in taker.saved] == [id(x), id(e)]
    assert sorted(taker.places.values()) == [0, 0, 1, 1]


def test_what_holds_no_tensor_stays_the_very_same():
    constants, e = [1, 2], np.array(2.0)
    taker = Taker(is_tensor, None)
    build = taker.grad(lambda dy: (constants, dy * e))
    assert build([NEW])(1.0)[0] is constants
    assert taker.grad(lambda dy: constants) is None


def test_a_closure_that_holds_itself_ends():
    around = [np.array(2.0)]
    around.append(around)

    def grad(dy, depth=0):
        return grad(dy, 1) if depth == 0 else dy * around[0]

    assert Taker(is_tensor, None).grad(grad)([OLD])(3.0) == 6


def test_a_function_of_somebody_else_is_left_alone_unless_asked():
    inner = by_cell()
    assert Taker(is_tensor, by_default).grad(lambda dy: inner(dy)) is None
    assert Taker(is_tensor, by_default, everywhere=True).grad(lambda dy: inner(dy))([NEW])(1.0) == 5


def test_cells_around_the_body_outlive_the_call():
    weight = np.array(2.0)

    def body():
        return lambda dy: dy * weight

    assert Taker(is_tensor, body).grad(body()) is None
