"""The same calls on a cluster of Dask: two worker processes, one of them killed midway."""

import os
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import simulations
import tensorflow as tf
from simulations import marks

import pullback as pb

X = np.arange(24.0)


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dask's own, about ports and files
        from distributed import Client, LocalCluster

        with (
            LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            client.upload_file(simulations.__file__)
            yield client


def test_a_map_runs_on_the_workers(client, tmp_path):
    f = pb.external(
        simulations.square.external.role("function"), output=lambda x: x, executor=client.get_executor()
    )
    y = tf.vectorized_map(lambda x: f(x, str(tmp_path)), tf.constant(X))
    np.testing.assert_array_equal(y, X**2)
    assert marks(tmp_path) == sorted(f"{x:g}" for x in X)


def test_equal_calls_are_not_taken_for_one(client, tmp_path):
    f = pb.external(
        simulations.square.external.role("function"), output=lambda x: x, executor=client.get_executor()
    )
    tf.vectorized_map(lambda x: f(x, str(tmp_path)), tf.constant(np.ones(4)))
    assert marks(tmp_path) == ["1"] * 4


def slowly(x, folder):
    """Square, and say which process does it."""
    Path(folder, f"at-{os.getpid()}").touch()
    time.sleep(0.1)
    simulations.mark(folder, f"{float(x):g}")
    return x**2


def test_a_worker_that_is_killed_midway_costs_no_result(client, tmp_path):
    f = pb.external(slowly, output=lambda x: x, executor=client.get_executor())

    def kill():
        while not (seen := [p.name.split("-")[1] for p in tmp_path.glob("at-*")]):
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(int(seen[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    y = tf.vectorized_map(lambda x: f(x, str(tmp_path)), tf.constant(X))
    killer.join()
    np.testing.assert_array_equal(y, X**2)  # each result once, in its place
    processes = {p.name for p in tmp_path.glob("at-*")}
    assert len(processes) >= 2
    done = [name for name in marks(tmp_path) if name != "at"]
    assert set(done) == {f"{x:g}" for x in X}
