"""What every host does around a call of a foreign function."""

import gc
import weakref

import numpy as np
import pytest
from foreign import Recorded, floats, mixed

from pullback import hosts
from pullback.errors import ExternalError
from pullback.hosts.foreign import register, registered
from pullback.hosts.numpy import callback
from pullback.hosts.specs import Spec


def run(function, *arrays, outputs=None, maps=()):
    foreign = Recorded(function)
    return callback.run(foreign, arrays, outputs or [floats(3)], maps), foreign


def test_numpy_runs_it_on_read_only_views():
    x, y = np.ones(3, np.float32), np.arange(2, dtype=np.float32)
    foreign = Recorded(mixed)
    (result,) = hosts.of(x).callback(foreign, [x, y], [floats(3)])
    assert result.tolist() == [3.0, 3.0, 3.0]
    ((given, _),) = foreign.calls
    assert np.shares_memory(given, x)
    with pytest.raises(ValueError, match="read-only"):
        given[0] = 1
    x[0] = 5  # the caller's own array is as it was


# ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────

OUTER, INNER = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(4, 2)


def each(x, y):
    return np.stack([[mixed(a, b)[0] for b in y] for a in x])


def test_maps_inside_maps_are_one_batch():
    results, foreign = run(
        mixed, OUTER, INNER, outputs=[floats(3, dtype="float64")], maps=((True, False), (False, True))
    )
    assert np.array_equal(results[0], each(OUTER, INNER))
    ((arrays, mapped),) = foreign.batches
    assert [a.shape for a in arrays] == [(8, 3), (8, 2)]
    assert mapped == [True, True]
    assert foreign.calls == []


def test_what_no_map_reaches_is_not_repeated():
    y = np.ones(2)
    results, foreign = run(mixed, OUTER, y, outputs=[floats(3, dtype="float64")], maps=((True, False),))
    assert np.array_equal(results[0], 2 * OUTER + 2)
    ((arrays, mapped),) = foreign.batches
    assert arrays[1] is y
    assert mapped == [True, False]


def test_both_maps_over_one_array():
    x = np.arange(12.0).reshape(2, 2, 3)
    results, _ = run(lambda x: [x + 1], x, outputs=[floats(3, dtype="float64")], maps=((True,), (True,)))
    assert np.array_equal(results[0], x + 1)


def test_an_empty_batch_runs_nothing():
    results, foreign = run(mixed, np.ones((0, 3)), np.ones(2), maps=((True, False),))
    assert results[0].shape == (0, 3)
    assert results[0].dtype == np.float32
    assert foreign.batches == []


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ([np.ones(2, np.float32)], r"the result is float32 \(2,\)\n  expected: float32 \(3,\)"),
        ([np.ones(3)], r"the result is float64 \(3,\)\n  expected: float32 \(3,\)"),
        ([np.ma.ones(3, np.float32)], "a masked array"),
        ([], "0 results\n  expected: 1"),
    ],
    ids=["shape", "dtype", "mask", "count"],
)
def test_a_wrong_result_is_refused_before_a_framework_sees_it(result, says):
    with pytest.raises(ExternalError, match=rf"^simulate \(model.py:12\): {says}"):
        run(lambda x: result, np.ones(3))


def test_a_wrong_result_of_several_is_named():
    with pytest.raises(ExternalError, match="result 1 is float32"):
        run(lambda x: [x, x], np.ones(3, np.float32), outputs=[floats(3), floats(4)])


def test_a_batch_that_lost_an_element_is_refused():
    class Short(Recorded):
        def batch(self, arrays, mapped):
            return [arrays[0][:-1]]

    with pytest.raises(ExternalError, match=r"\(1, 3\)\n  expected: float32 \(2, 3\), the batch in front"):
        callback.run(Short(mixed), [np.ones((2, 3), np.float32)], [floats(3)], ((True,),))


def test_unknown_lengths_are_accepted():
    results, _ = run(
        lambda x: [x[x > 0]], np.array([1.0, -1.0]), outputs=[Spec((None,), "float64", "floating")]
    )
    assert results[0].tolist() == [1.0]


def test_numbers_become_arrays():
    results, _ = run(lambda x: [np.float64(2.0)], np.ones(3), outputs=[floats(dtype="float64")])
    assert type(results[0]) is np.ndarray


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────

WORKSPACE = np.zeros(4)


def fresh():
    return np.ones(4)


def fresh_view():
    return np.ones((2, 2)).reshape(4)


def workspace():
    return WORKSPACE


def part_of_a_workspace():
    return WORKSPACE[:]


def read_only():
    array = np.ones(4)
    array.flags.writeable = False
    return array


def somebody_elses_memory():
    return np.frombuffer(bytearray(32))


def a_view_of_somebody_elses_memory():
    return np.frombuffer(bytearray(32))[:]


@pytest.mark.parametrize("make", [fresh, fresh_view])
def test_what_nobody_else_holds_is_not_copied(make):
    results = [make()]
    address = results[0].ctypes.data
    assert callback.own(results)[0].ctypes.data == address


@pytest.mark.parametrize(
    "make",
    [
        workspace,
        part_of_a_workspace,
        read_only,
        somebody_elses_memory,
        a_view_of_somebody_elses_memory,
    ],
)
def test_what_somebody_may_write_to_is_copied(make):
    results = [make()]
    address = results[0].ctypes.data
    assert callback.own(results)[0].ctypes.data != address


def test_a_result_with_another_holder_is_copied():
    kept = np.ones(4)
    results = [kept]
    callback.own(results)
    kept[0] = 7
    assert results[0][0] == 1


def test_a_list_that_is_cached_does_not_give_its_arrays_away():
    cached = [np.ones(4)]
    results, _ = run(lambda: cached, outputs=[floats(4, dtype="float64")])
    assert not np.shares_memory(callback.own(results)[0], cached[0])


def test_results_are_laid_out_in_rows():
    results = callback.own([np.asfortranarray(np.arange(6.0).reshape(2, 3)).T])
    assert results[0].flags.c_contiguous
    assert results[0].shape == (3, 2)


# ── names and errors ─────────────────────────────────────────────────────────────────────────────────────


def test_a_number_finds_a_foreign_function_as_long_as_somebody_holds_it():
    foreign = Recorded(mixed)
    token, alive = register(foreign), weakref.ref(foreign)
    assert registered(token) is foreign
    del foreign
    gc.collect()
    assert alive() is None
    with pytest.raises(KeyError):
        registered(token)


@pytest.mark.parametrize("chained", [False, True])
def test_kept_errors_keep_no_arrays(chained):
    class Large(np.ndarray):
        pass

    large = np.ones(3).view(Large)
    alive = weakref.ref(large)

    def fails(array):
        raise ValueError("no")

    with pytest.raises(ExternalError, match="ValueError: no"):
        callback.telling(fails, chained=chained)(large)
    del large
    gc.collect()
    assert alive() is None


def test_the_error_behind_a_text_is_found():
    def fails():
        try:
            {}["x"]
        except KeyError as error:
            raise RuntimeError("the solver diverged") from error

    with pytest.raises(ExternalError) as told:
        callback.telling(fails, chained=False)()
    assert '{}["x"]' in str(told.value), "the line of the cause is told"
    found = callback.original(Exception(f"INTERNAL: {told.value}"))
    assert type(found) is RuntimeError
    assert type(found.__cause__) is KeyError
    assert callback.original(Exception("something else")) is None


def test_a_dtype_without_a_name_is_refused():
    with pytest.raises(ExternalError, match="dtype qint8, which NumPy has no name for"):
        callback.dtype("qint8")
