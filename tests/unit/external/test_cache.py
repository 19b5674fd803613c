"""Results are remembered by content: bounded, off by default, counted."""

import hashlib

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb
from pullback.wrapping.cache import Cache
from pullback.wrapping.same import fingerprint

X = np.arange(3.0)


def counted(**options):
    calls = []
    f = pb.external(lambda x, power=2: calls.append(1) or x**power, output=lambda x: x, **options)
    return f, calls


def test_nothing_is_remembered_by_default():
    f, calls = counted()
    f(X), f(X)
    assert len(calls) == 2
    assert f.cache is None


def test_equal_content_is_a_hit_whatever_array_it_is_in():
    f, calls = counted(cache=4)
    f(X), f(X.copy()), f(tf.constant(X))
    assert len(calls) == 1
    assert (f.cache.hits, f.cache.misses) == (2, 1)


@pytest.mark.parametrize(
    "other", [(X + 1,), (X.astype(np.float32),), (X.reshape(3, 1),), (X, 3), (-X,)], ids=str
)
def test_anything_else_is_another_call(other):
    f, calls = counted(cache=4)
    f(X), f(*other)
    assert len(calls) == 2


def test_minus_zero_is_another_number():
    f, calls = counted(cache=4)
    f(np.zeros(1)), f(-np.zeros(1))
    assert len(calls) == 2


def test_the_oldest_result_goes_first():
    f, calls = counted(cache=2)
    f(X), f(X + 1), f(X), f(X + 2), f(X)
    assert len(calls) == 3
    f(X + 1)
    assert len(calls) == 4
    assert len(f.cache) == 2


def test_a_pullback_that_calls_the_function_does_not_repeat_it():
    calls = []

    @pb.external(output=lambda x: x, cache=8)
    def f(x):
        calls.append(1)
        return np.exp(x)

    @f.pullback
    def _(dy, x):
        return dy * f(x)

    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.exp(X))
    assert len(calls) == 1
    assert f.cache.hits == 1


def test_differences_share_the_cache():
    calls = []
    f = pb.external(lambda x: calls.append(1) or x**2, output=lambda x: x, gradient="central", cache=64)
    x = tf.constant(X)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)
        if _ == 0:
            first = len(calls)
    assert len(calls) == first


def test_a_batch_runs_only_what_is_new():
    f, calls = counted(cache=8)
    f(X)
    y = tf.vectorized_map(f, tf.constant(np.stack([X + 1, X, X + 2])))
    np.testing.assert_array_equal(y, np.stack([X + 1, X, X + 2]) ** 2)
    assert len(calls) == 3


def test_what_is_handed_out_cannot_be_changed():
    f, _ = counted(cache=4)
    f(X)[:] = 7
    np.testing.assert_array_equal(f(X), X**2)


def test_a_cache_can_be_cleared():
    f, calls = counted(cache=4)
    f(X)
    f.cache.clear()
    f(X)
    assert len(calls) == 2


def test_fingerprints_see_content_and_not_layout():
    a = np.arange(6.0).reshape(2, 3)
    assert fingerprint(a) == fingerprint(np.asfortranarray(a))
    assert fingerprint(a) != fingerprint(a.T)
    assert fingerprint(np.zeros((0, 2))) != fingerprint(np.zeros((0, 3)))


def test_a_cache_says_what_it_holds():
    cache = Cache(3)
    cache.get("a")
    cache.put("a", [X])
    cache.get("a")
    assert repr(cache) == "<cache of 1 of 3 results, 1 hits, 1 misses>"


def test_another_place_for_results_is_two_methods(monkeypatch, tmp_path):
    class Folder(Cache):
        def file(self, key):
            return tmp_path / f"{hashlib.blake2b(repr(key).encode()).hexdigest()[:32]}.npz"

        def find(self, key):
            if not self.file(key).exists():
                return None
            with np.load(self.file(key)) as held:
                return list(held.values())

        def keep(self, key, results):
            np.savez(self.file(key), *results)

    monkeypatch.setattr("pullback.wrapping.cache.Cache", Folder)
    f, calls = counted(cache=4)
    first, again = f(X), f(X)
    np.testing.assert_array_equal(first, again)
    assert (len(calls), f.cache.hits, f.cache.misses) == (1, 1, 1)
    later, more = counted(cache=4)  # as in a program that runs another time
    np.testing.assert_array_equal(later(X), first)
    later(X + 1)
    assert (len(more), later.cache.hits, later.cache.misses) == (1, 1, 1)
    assert len(list(tmp_path.iterdir())) == 2
