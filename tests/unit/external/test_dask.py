"""The same calls on a cluster of Dask: two worker processes, one of them killed midway."""

import os
import signal
import subprocess
import sys
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
from pullback.errors import ExternalError
from pullback.wrapping import executors

X = np.arange(24.0)


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dask's own, about ports and files
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
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


def test_a_call_that_ends_its_program_is_an_error(client):
    f = pb.external(
        simulations.leaving.external.role("function"), output=lambda x: x, executor=client.get_executor()
    )
    with pytest.raises(ExternalError, match="it raised SystemExit: three is the end"):
        f(X)
    assert f(X[:3]).tolist() == [0.0, 1.0, 4.0]  # the workers are there


def killing(number):
    """Make a function that kills its process at a number; it travels by value."""
    return lambda x: os._exit(1) if x == number else x**2


def test_nobody_waits_for_workers_that_are_gone(monkeypatch):
    monkeypatch.setattr(executors, "_RETURN", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=0, dashboard_address=None)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
    command += ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
    workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        with cluster, Client(cluster) as client:
            client.wait_for_workers(2)
            f = pb.external(killing(3), output=lambda x: x, executor=client.get_executor(), timeout=1)
            assert f(np.array(2.0)) == 4.0
            with pytest.raises(ExternalError, match="every worker of the executor is gone"):
                f(np.array(3.0))
            with pytest.raises(ExternalError, match="no worker is left to run it"):
                f(np.array(2.0))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def test_a_call_that_kills_its_workers_is_given_up_when_dask_gives_it_up(monkeypatch):
    monkeypatch.setattr(executors, "_RETURN", 600.0)  # new workers take their time to start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            f = pb.external(killing(3), output=lambda x: x, executor=client.get_executor())
            with pytest.raises(ExternalError, match=r"died 4 times \(KilledWorker\)"):
                f(np.array(3.0))
