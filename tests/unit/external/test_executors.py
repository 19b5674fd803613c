"""Calls on executors: threads, processes, processes that die, calls that take too long."""

import concurrent.futures
import multiprocessing
import os
import sys
import threading
import time

import numpy as np
import pytest
import simulations
import tensorflow as tf
from frameworks import EVERYWHERE, vjp
from simulations import marks

import pullback as pb
from pullback.errors import (
    DefinitionError,
    ExternalError,
    ExternalMutationError,
    ExternalTimeoutError,
)
from pullback.wrapping import executors

X = np.arange(8.0)


@pytest.fixture(scope="module")
def processes():
    """Two processes, started anew: a fork would copy the threads of the frameworks."""
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def on(executor, function, **options):
    """Give a function of the simulations an executor."""
    held = function.external
    made = pb.external(held.role("function"), output=held.options.output, executor=executor, **options)
    if "pullback" in held.roles:
        made.pullback(held.role("pullback"))
    return made


def mapped(f, *statics):
    return tf.vectorized_map(lambda x: f(x, *statics), tf.constant(X)).numpy()


def test_threads_run_at_the_same_time():
    together = threading.Barrier(4, timeout=30)

    def f(x):
        together.wait()
        return x**2

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        g = pb.external(f, output=lambda x: x, executor=pool)
        np.testing.assert_array_equal(tf.vectorized_map(g, tf.constant(X)), X**2)


def test_processes_give_each_result_once_and_in_order(processes, tmp_path):
    f = on(processes, simulations.square)
    np.testing.assert_array_equal(mapped(f, str(tmp_path)), X**2)
    assert marks(tmp_path) == sorted(f"{x:g}" for x in X)


def test_differences_go_to_the_executor(processes, tmp_path):
    f = on(processes, simulations.square, gradient="central", step=1e-4)
    _, (dx,) = vjp("tensorflow", lambda x: f(x, str(tmp_path)), X[1:])
    np.testing.assert_allclose(dx, 2 * X[1:], rtol=1e-7)
    assert len(marks(tmp_path)) == 1 + 2 * len(X[1:])


def test_the_pullback_runs_there_too(processes):
    simulations.MAIN = os.getpid()
    try:
        _, (dx,) = vjp("tensorflow", on(processes, simulations.cube), X)
    finally:
        simulations.MAIN = None
    np.testing.assert_array_equal(dx, 3 * X**2)


def test_a_function_inside_another_one_travels_by_value(processes):
    offset = 5.0
    f = pb.external(lambda x: x + offset, output=lambda x: x, executor=processes)
    np.testing.assert_array_equal(f(X), X + 5)


def test_an_exception_comes_back_with_its_traceback_and_its_element(processes):
    with pytest.raises(tf.errors.OpError, match="element 3 of 8 of the batch") as caught:
        mapped(on(processes, simulations.complaining))
    assert "three is not allowed" in str(caught.value)
    assert "in complaining" in str(caught.value)


def test_an_exception_that_cannot_be_pickled_comes_back_as_text(processes):
    with pytest.raises(ExternalError, match="UnpicklableError: odd error"):
        on(processes, simulations.strange)(X)


def test_arguments_are_read_only_there_too(processes):
    with pytest.raises(ExternalMutationError):
        on(processes, simulations.writing)(X)


def test_a_function_that_cannot_be_sent_is_refused(processes):
    lock = threading.Lock()
    f = pb.external(lambda x: x * bool(lock), output=lambda x: x, executor=processes)
    with pytest.raises(DefinitionError, match="cannot be sent"):
        f(X)


# ── workers that die ─────────────────────────────────────────────────────────────────────────────────────


# Python's own pool may stumble over a process that it starts while another one dies: it says so in a thread
# that ends there, and by then it has told every call that waits.
dying = pytest.mark.filterwarnings("ignore:Exception in thread:pytest.PytestUnhandledThreadExceptionWarning")


def make_pool():
    return concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))


@dying
@pytest.mark.parametrize("made", [False, True], ids=["a pool", "a function that makes one"])
def test_a_worker_that_dies_costs_no_result(made, tmp_path):
    executor = make_pool if made else make_pool()
    f = on(executor, simulations.fragile)
    np.testing.assert_array_equal(mapped(f, str(tmp_path)), X**2)
    assert (tmp_path / "dead").exists()
    counts = {name: marks(tmp_path).count(name) for name in marks(tmp_path)}
    assert set(counts) == {f"{x:g}" for x in X}
    # what was under way beside the call that died may have run twice, nothing else
    assert max(counts.values()) <= 2
    assert counts["0"] == 1
    np.testing.assert_array_equal(f(tf.constant(2.0), str(tmp_path)), 4.0)  # the fresh pool works
    f.external.runner.pool.current().shutdown()


@dying
def test_a_call_that_kills_every_worker_is_named():
    f = on(make_pool, simulations.deadly)
    with pytest.raises(tf.errors.OpError, match=r"died 4 times, element 3 of 8 of the batch"):
        mapped(f)
    f.external.runner.pool.current().shutdown()


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_that_takes_too_long_is_an_error_that_says_where_it_was():
    done = threading.Event()

    def waits_for_ever(x):
        done.wait(30)
        return x

    f = pb.external(waits_for_ever, output=lambda x: x, timeout=0.1)
    with pytest.raises(ExternalTimeoutError, match=r"no result after 0\.1 s") as caught:
        f(X)
    done.set()
    assert "in waits_for_ever" in str(caught.value)
    assert isinstance(caught.value, TimeoutError)


def test_a_call_in_time_is_as_without_a_limit():
    f = pb.external(lambda x: x * 2, output=lambda x: x, timeout=30)
    np.testing.assert_array_equal(f(X), 2 * X)
    g = pb.external(lambda x: 1 / 0, output=lambda x: x, timeout=30)
    with pytest.raises(ExternalError, match="ZeroDivisionError"):
        g(X)


@pytest.mark.parametrize("threads", [False, True])
def test_a_call_that_fails_is_tried_again(threads):
    calls = []

    def flaky(x):
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("try again")
        return x * 2

    pool = concurrent.futures.ThreadPoolExecutor(1) if threads else None
    f = pb.external(flaky, output=lambda x: x, retries=2, executor=pool)
    np.testing.assert_array_equal(f(X), 2 * X)
    assert len(calls) == 3


def test_no_more_often_than_it_says():
    calls = []
    f = pb.external(lambda x: calls.append(1) or 1 / 0, output=lambda x: x, retries=2)
    with pytest.raises(ExternalError, match="ZeroDivisionError"):
        f(X)
    assert len(calls) == 3


def test_a_slow_call_is_tried_again():
    calls = []

    def sometimes(x):
        calls.append(1)
        if len(calls) == 1:
            time.sleep(1)
        return x * 2

    f = pb.external(sometimes, output=lambda x: x, timeout=0.3, retries=1)
    np.testing.assert_array_equal(f(X), 2 * X)
    assert len(calls) == 2


class Silent(concurrent.futures.Executor):
    """Take calls, and never answer: a worker that hangs where no clock of ours can run."""

    def submit(self, function, /, *args, **kwargs):
        return concurrent.futures.Future()


def test_the_limit_counts_where_a_call_is_waited_for(monkeypatch):
    monkeypatch.setattr(executors, "_ON_THE_WAY", 0.0)
    monkeypatch.setattr(executors, "_GLANCE", 0.01)
    f = pb.external(lambda x: x, output=lambda x: x, executor=Silent(), timeout=0.05, retries=1)
    with pytest.raises(ExternalTimeoutError, match=r"no result after 0\.05 s"):
        f(X)
    with pytest.raises(tf.errors.OpError, match=r"no result after 0\.05 s, element 0 of 8 of the batch"):
        mapped(f)


def test_a_call_in_a_queue_is_not_late(monkeypatch):
    monkeypatch.setattr(executors, "_ON_THE_WAY", 0.0)
    monkeypatch.setattr(executors, "_GLANCE", 0.01)
    free = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(free.wait, 30)
        threading.Timer(0.3, free.set).start()
        f = pb.external(lambda x: 2 * x, output=lambda x: x, executor=pool, timeout=0.1)
        np.testing.assert_array_equal(f(X), 2 * X)


# ── programs that end ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["in line", "a limit", "a thread", "a process"])
def test_a_call_that_ends_its_program_is_an_error(where, processes):
    options = {
        "in line": {},
        "a limit": {"timeout": 30},
        "a thread": {"executor": concurrent.futures.ThreadPoolExecutor(1)},
        "a process": {"executor": processes},
    }[where]
    f = pb.external(simulations.leaving.external.role("function"), output=lambda x: x, **options)
    with pytest.raises(ExternalError, match="it raised SystemExit: three is the end") as caught:
        f(X)
    assert isinstance(caught.value.__cause__, SystemExit)
    np.testing.assert_array_equal(f(X[:3]), X[:3] ** 2)


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
def test_a_pullback_that_ends_its_program_is_an_error(framework, compiled):
    f = pb.external(lambda x: x, output=lambda x: x)
    f.pullback(lambda dy: sys.exit(3))
    with pytest.raises(Exception, match="it raised SystemExit: 3"):
        vjp(framework, f, X, compiled=compiled)


def test_an_interrupt_reaches_the_program():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pb.external(f, output=lambda x: x)(X)


def test_a_long_stream_is_not_held_in_memory():
    """No more calls are under way than the workers need."""
    started = []
    finished = []

    def f(x):
        started.append(1)
        time.sleep(0.001)
        finished.append(1)
        assert len(started) - len(finished) <= 2
        return x

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        g = pb.external(f, output=lambda x: x, executor=pool, gradient="central", step=1e-4)
        vjp("tensorflow", g, np.ones(100))
    assert len(started) == 201


def test_an_external_function_can_be_pickled_into_another(processes):
    inner = pb.external(lambda x: x * 3, output=lambda x: x, executor=processes)
    outer = pb.external(lambda x: inner(x) + 1, output=lambda x: x, executor=processes)
    np.testing.assert_array_equal(outer(X), 3 * X + 1)
