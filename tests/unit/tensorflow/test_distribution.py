"""Rules under `tf.distribute`: two logical devices, and two real processes on loopback."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import keras
import numpy as np
import tensorflow as tf

import pullback as pb


@pb.custom_gradient
def scaled(x, w):
    def grad(dy):
        return dy * w, 100 * tf.reduce_sum(dy * x)  # a hundred times: shows the rule is used

    return x * w, grad


def test_two_logical_devices():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        w = tf.Variable(2.0)
    data = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(4)
    )

    @tf.function
    def step(batch):
        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(scaled(x, w))
            return tape.gradient(loss, w)

        return strategy.reduce("SUM", strategy.run(replica, args=(batch,)), axis=None)

    assert [step(batch).numpy() for batch in data] == [1000.0]


def test_captured_variables_on_two_devices():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        w = tf.Variable(2.0)

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy, [100 * tf.reduce_sum(dy * x) for _ in variables]

        return x * w, grad

    @tf.function
    def step():
        def replica():
            x = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1
            with tf.GradientTape() as tape:
                loss = f(x)
            return tape.gradient(loss, w)

        return strategy.reduce("SUM", strategy.run(replica), axis=None)

    assert step().numpy() == 300.0


def test_keras_fit_on_two_devices_equals_one():
    @pb.custom_gradient
    def squared(y_true, y_pred):
        error = y_pred - y_true

        def grad(dy):
            return None, 2 * error * dy[:, None]

        return tf.reduce_mean(error**2, -1), grad

    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(8, 2)
    y = x[:, :1] * 2

    def run(strategy):
        with strategy.scope():
            keras.utils.set_random_seed(1)
            model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
            model.compile(keras.optimizers.SGD(0.1), loss=squared)
        model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0)
        return model.get_weights()

    two = run(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
    one = run(tf.distribute.get_strategy())
    for a, b in zip(two, one):
        np.testing.assert_allclose(a, b, rtol=1e-5)


WORKER = """
    import json, sys
    import tensorflow as tf
    import pullback as pb
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        w = tf.Variable(2.0)

    @pb.custom_gradient
    def scaled(x, w):
        def grad(dy):
            return dy * w, 100 * tf.reduce_sum(dy * x)
        return x * w, grad

    @tf.function
    def step():
        def replica():
            x = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1
            with tf.GradientTape() as tape:
                loss = scaled(x, w)
            gradient = tape.gradient(loss, w)
            return tf.distribute.get_replica_context().all_reduce("SUM", gradient)
        return strategy.run(replica)

    print("gradient", float(step()), strategy.num_replicas_in_sync)
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def test_two_real_processes():
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    processes = []
    for index in range(2):
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "CUDA_VISIBLE_DEVICES": ""}
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            environment.pop(name, None)
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(WORKER)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        for process in processes:
            out, err = process.communicate(timeout=180)
            assert process.returncode == 0, err[-2000:]
            assert out.strip().splitlines()[-1] == "gradient 300.0 2"
    finally:
        for process in processes:
            process.kill()
