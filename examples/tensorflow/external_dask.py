"""How do I spread a simulation over a cluster, and what if a machine dies?

Give `pb.external` an executor: here that of a Dask cluster of two worker processes. One of them is killed
while a batch runs. What it had not finished runs again elsewhere; every result arrives once, in its place.
"""

import os
import signal
import threading
import time

import numpy as np
from distributed import Client, LocalCluster

import pullback as pb


def cooling(start, rate):
    """How a rod cools: an explicit scheme, slow on purpose, and the process that ran it."""
    u = np.asarray(start) * np.sin(np.linspace(0, np.pi, 50))
    for _ in range(2000):
        u[1:-1] += 0.4 * rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    time.sleep(0.05)
    return u.max(), np.asarray(float(os.getpid()))


def on(executor):
    """The simulation as an operation that runs on an executor."""
    return pb.external(cooling, output=(np.empty(()),) * 2, gradient="central", step=1e-4, executor=executor)


def kill_soon(client):
    """Kill one of the workers while it is busy."""
    pid = next(iter(client.run(os.getpid).values()))

    def kill():
        while not any(client.processing().values()):
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill).start()
    return pid


if __name__ == "__main__":
    import tensorflow as tf  # not above: every worker imports this file, and needs no framework

    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        simulate = on(client.get_executor())
        starts, rate = tf.constant(np.linspace(1.0, 2.0, 40)), tf.constant(0.7, tf.float64)
        batch = tf.function(lambda: tf.vectorized_map(lambda start: simulate(start, rate), starts))
        expected, _ = batch()
        killed = kill_soon(client)
        found, where = batch()
        np.testing.assert_array_equal(found, expected)
        workers = set(where.numpy().astype(int).tolist())
        print(f"40 results from the processes {workers}; {killed} was killed midway")
        assert len(workers) > 1

        with tf.GradientTape() as tape:
            tape.watch(rate)
            warm = simulate(starts[0], rate)[0]
        slope = tape.gradient(warm, rate)  # its differences go to the cluster too
        print(f"the derivative by the rate: {slope:.6f}")
        assert abs(slope - (cooling(1.0, 0.7001)[0] - cooling(1.0, 0.6999)[0]) / 2e-4) < 1e-6
