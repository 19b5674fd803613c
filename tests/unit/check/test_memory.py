"""A check asks a function once for each point, if it gives the same twice."""

import itertools

import numpy as np
import pytest

from pullback.checker import memory
from pullback.checker.memory import Memory

X = (np.array([1.0, 2.0]),)


def test_a_point_that_comes_back_is_asked_once_more_and_then_known():
    calls = []
    ask = Memory(lambda inputs: (calls.append(inputs), (inputs[0] * 2,))[1])
    found = [ask(X)[0] for _ in range(5)]
    assert len(calls) == 2
    assert all(np.array_equal(f, [2.0, 4.0]) for f in found)
    ask((np.array([1.0, 2.5]),))
    ask((X[0].astype("float32"),))
    assert len(calls) == 4
    assert np.array_equal(ask((np.array([1.0, 2.5]),))[0], [2.0, 5.0])
    assert len(calls) == 4


def test_cotangents_and_none_are_part_of_the_question():
    ask = Memory(lambda inputs, given: tuple(None if g is None else (g[0] * inputs[0],) for g in given))
    once, other = (None, X), (X, None)
    for _ in range(3):
        assert ask(X, once)[0] is None
        assert ask(X, other)[1] is None


def test_zeros_of_both_signs_are_two_points():
    ask = Memory(lambda inputs: (np.copysign(1.0, inputs[0]),))
    for sign in (0.0, -0.0, 0.0, -0.0, 0.0, -0.0):
        assert ask((np.array(sign),))[0] == np.copysign(1.0, sign)


def test_what_differs_by_a_bit_is_asked_each_time():
    numbers = itertools.count()
    ask = Memory(lambda inputs: (inputs[0] * (1 + next(numbers) * 2.0**-52),))
    assert [float(ask(X)[0][0]) for _ in range(4)] == [1 + k * 2.0**-52 for k in range(4)]


def test_what_is_given_is_not_what_is_kept():
    kept = np.array([1.0])
    ask = Memory(lambda inputs: (kept,))
    for _ in range(3):
        ask(X)
    kept[0] = 5.0  # a function may write into what it gave
    ask(X)[0][0] = 7.0  # and so may who asked
    assert ask(X)[0][0] == 1.0


def test_what_is_raised_is_raised_again():
    calls = []

    def refuse(inputs):
        calls.append(inputs)
        raise ValueError("not here")

    ask = Memory(refuse)
    for _ in range(3):
        with pytest.raises(ValueError, match="not here"):
            ask(X)
    assert len(calls) == 3


def test_large_points_are_not_kept_and_answers_only_for_a_while(monkeypatch):
    calls = []
    ask = Memory(lambda inputs: (calls.append(inputs), inputs)[1])
    large = (np.zeros(memory.LARGE),)
    for _ in range(4):
        ask(large)
    assert len(calls) == 4
    monkeypatch.setattr(memory, "MOST", 40)
    for i in range(100):
        ask((np.array([float(i), 0.0]),))
    assert len(ask.answers) <= 2
