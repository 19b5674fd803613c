"""`pullback check train.py`: a program that never heard of it is run, and its rules are checked."""

import json
from xml.etree import ElementTree

import pytest

TRAIN = """
    import gc, sys
    import tensorflow as tf
    import pullback as pb

    @tf.custom_gradient
    def cube(x):
        def grad(dy):
            return -dy * 3 * x**2
        return x**3, grad

    @pb.custom_gradient
    def scaled(x, factor):
        def grad(dy):
            return dy * factor
        return x * factor, grad

    @pb.custom_gradient(differs="straight-through")
    def quantise(x):
        def grad(dy):
            return dy
        return tf.round(x), grad

    @tf.custom_gradient
    def counted(n):
        def grad(dy):
            return None
        return tf.cast(n, tf.float32), grad

    w = tf.Variable([0.5, -1.0])
    rounded = tf.grad_pass_through(tf.round)
    deep = tf.recompute_grad(lambda x: tf.sin(x) * x)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(scaled(cube(w) + x, factor=2.0) + rounded(w) + deep(w) + quantise(w))
        w.assign_sub(0.01 * tape.gradient(loss, w))

    for _ in range(3):
        step(tf.ones([2]))
    scaled(tf.ones([2, 2]), 3.0)
    counted(tf.constant([1, 2]))
    print("arguments", sys.argv[1:], __name__)
    print("out of sight", gc.get_freeze_count() > 100_000)
    sys.stdout.flush()
    sys.stdout.buffer.write(bytes(range(256)))
    sys.exit()
"""


@pytest.fixture(scope="module")
def trained(project):
    project.write("train.py", TRAIN)
    files = ["--json", "report.json", "--html", "report.html", "--junit", "report.xml", "--github"]
    code, out, said = project.check("train.py", *files, "--", "--rate", "3", "--strict", afresh=True)
    rules = json.loads((project.folder / "report.json").read_text(encoding="utf-8"))["rules"]
    return project, code, out, said, rules


def test_a_wrong_rule_is_caught_and_named(trained):
    _, code, out, said, _ = trained
    assert code == 1
    assert said == ["pullback: train.py uses others too: 1 of TensorFlow's own; `--all` checks them"]
    assert "wrong: sign" in out
    assert "cube (train.py:6): wrong at float32[2]" in out
    assert "tape.gradient" in out


def test_every_spelling_is_found_and_judged(trained):
    *_, rules = trained
    verdicts = {rule["name"]: rule["verdict"] for rule in rules}
    assert verdicts == {
        "cube": "wrong",
        "scaled": "right",
        "tf.grad_pass_through(round)": "right",
        "tf.recompute_grad(<lambda>)": "right",
        "quantise": "right",
        "counted": "undecided",
    }
    assert {rule["signature"] for rule in rules if rule["name"] == "scaled"} == {"float32[2]", "float32[2,2]"}
    intents = {rule["name"]: rule["intent"] for rule in rules}
    assert intents["quantise"] == "different on purpose: straight-through"
    assert intents["tf.grad_pass_through(round)"] == "different on purpose: tf.grad_pass_through"


def test_arguments_and_output_pass_through(trained):
    _, _, out, _, _ = trained
    assert "arguments ['--rate', '3', '--strict'] __main__" in out


def test_what_the_import_of_a_framework_made_is_out_of_sight_of_the_garbage_collector(trained):
    _, _, out, _, _ = trained
    assert "out of sight True" in out


def test_files_are_written(trained):
    project, _, out, _, rules = trained
    suite = ElementTree.parse(project.folder / "report.xml").getroot().find("testsuite")
    assert suite.attrib["tests"] == "6"
    assert suite.find("testcase[@name='cube']/failure").attrib["type"] == "sign"
    assert "::error file=train.py,line=6,title=cube%3A wrong (sign)::" in out
    assert all(rule["seed"] == 1 for rule in rules)


def test_the_json_file_follows_the_schema(trained, monkeypatch):
    from importlib import resources
    from pathlib import Path

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "report"))
    from json_schema import errors

    schema = json.loads((resources.files("pullback.report") / "schema.json").read_text(encoding="utf-8"))
    data = json.loads((trained[0].folder / "report.json").read_text(encoding="utf-8"))
    assert errors(data, schema) == []


def test_the_page_is_made_of_the_json_alone(trained):
    project, *_, rules = trained
    done = project.run("report", "report.json", "--html", "again.html")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    page = (project.folder / "again.html").read_text(encoding="utf-8")
    assert page == (project.folder / "report.html").read_text(encoding="utf-8")
    cube = next(rule for rule in rules if rule["name"] == "cube")
    assert [picture["kind"] for picture in cube["pictures"]] == ["scatter", "heat", "slice", "stability"]
    assert cube["code"].startswith("@tf.custom_gradient\n")
    assert any(f["smallest"].startswith("x = [") for f in cube["findings"])


def test_a_keras_program_is_right_and_the_undecided_is_said(project):
    project.write(
        "fit.py",
        """
        import os
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import keras, tensorflow as tf
        assert "pullback" not in globals()

        @keras.ops.custom_gradient
        def activation(x):
            def grad(dy):
                return dy * keras.ops.cast(x >= 0, x.dtype)
            return keras.ops.relu(x), grad

        @tf.custom_gradient
        def counted(n):
            return tf.cast(n, tf.float32), lambda dy: None

        class Layer(keras.layers.Layer):
            def call(self, x):
                return activation(x)

        model = keras.Sequential([keras.layers.Dense(4), Layer(), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(tf.random.normal([8, 3]), tf.random.normal([8, 1]), epochs=3, verbose=0)
        """,
    )
    code, out, said = project.check("fit.py")
    assert code == 0
    assert "1 rule: 1 right" in out
    assert said == ["pullback: fit.py uses others too: 1 of TensorFlow's own; `--all` checks them"]


def test_an_endless_program_is_stopped_and_checked(project):
    project.write(
        "endless.py",
        """
        import jax, jax.numpy as jnp

        @jax.custom_gradient
        def square(x):
            return x * x, lambda dy: 2 * x * dy

        while True:
            square(jnp.array([0.5, -1.0]))
        """,
    )
    code, out, said = project.check("endless.py", "--for", "5")
    assert code == 0
    assert "1 rule: 1 right" in out
    assert said == ["pullback: endless.py was stopped after 5 s; what it had used by then is checked"]


def test_strict_fails_on_undecided_and_the_logs_of_a_check_are_not_shown(project, monkeypatch):
    project.write(
        "whole.py",
        """
        import sys
        import tensorflow as tf

        @tf.custom_gradient
        def counted(n):
            return tf.cast(n, tf.float32), lambda dy: None

        @tf.custom_gradient
        def cube(x):
            if RUNNING is False:
                print("its own words", file=sys.stderr)
                tf.get_logger().warning("provoked in Python")
                sys.stderr.write("2026-01-31 12:00:00.123456: W tensorflow/core/x.cc:1] provoked in C++\\n")
                sys.stderr.write("I0000 00:00:1769860800.123456 77 service.cc:152] provoked in XLA\\n")
            return x**3, lambda dy: 3 * x**2 * dy

        RUNNING = True
        counted(tf.constant([1, 2])), cube(tf.constant([1.0, 2.0]))
        tf.get_logger().warning("while it runs")
        RUNNING = False
        """,
    )
    done = project.run("check", "--seed", "1", "whole.py", "--strict", "--order", "1")
    assert done.returncode == 1
    assert "undecided" in done.stdout
    errors = done.stderr.splitlines()
    assert errors.count("WARNING:tensorflow:while it runs") == 1
    assert errors.count("its own words") == 1
    assert not [line for line in errors if "provoked" in line or "XLA service" in line]
