"""Whose a rule is: a gradient given to a framework's function is the user's; a framework's own is counted."""

import importlib.util

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback.record.listening import recording
from pullback.record.naming import name_apart, own_words
from pullback.record.recorder import Recorder


@pytest.fixture
def recorder():
    return Recorder()


def seen(recorder):
    assert recorder.errors == []
    return {rule.name: rule for rule in recorder.rules.values()}


def wrong(dy, x):
    return -dy


def flat(x):
    return 0.0 * x


def with_own_jvp():
    sin = jax.custom_jvp(jnp.sin)
    sin.defjvps(lambda t, out, x: t)
    return sin


def with_own_vjp():
    tanh = jax.custom_vjp(jnp.tanh)
    tanh.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (g,))
    return tanh


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (lambda: pb.with_gradient(tf.sin, wrong), tf.ones([2])),
        (lambda: pb.with_gradient(torch.sin, wrong), torch.ones(2)),
        (lambda: pb.with_gradient(jnp.sin, wrong), jnp.ones(2)),
        (lambda: pb.elementwise(tf.sin, flat), tf.ones([2])),
        (lambda: pb.elementwise(torch.sin, flat), torch.ones(2)),
        (lambda: pb.elementwise(jnp.sin, flat), jnp.ones(2)),
        (lambda: pb.surrogate(tf.round, like=flat), tf.ones([2])),
        (lambda: pb.straight_through(tf.round), tf.ones([2])),
        (lambda: pb.straight_through(torch.round), torch.ones(2)),
        (with_own_jvp, jnp.ones(2)),
        (with_own_vjp, jnp.ones(2)),
    ],
)
def test_a_gradient_given_to_a_function_of_a_framework_is_the_user_s(recorder, make, x):
    with recording(recorder):
        make()(x)
    (rule,) = seen(recorder).values()
    assert rule.path == __file__
    assert not recorder.own


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tf.nn.silu(tf.ones([2])), "1 of TensorFlow's own; `--all` checks them"),
        (lambda: jax.nn.relu(jnp.ones(2)), "1 of JAX's own; `--all` checks them"),
        (lambda: pb.clip_gradient(torch.ones(2), norm=1.0), "1 of pullback's own; `--all` checks them"),
        (lambda: torch.sin(torch.ones(2)), ""),
    ],
)
def test_rules_of_the_frameworks_are_counted(recorder, call, said):
    with recording(recorder):
        call()
        call()
    assert not recorder.rules
    assert own_words(recorder) == said


def test_a_rule_that_is_made_while_pullback_is_imported_stands_where_it_is_written():
    recorder = Recorder(everything=True)
    path = importlib.util.find_spec("pullback.ops.log1mexp").origin
    spec = importlib.util.spec_from_file_location("pullback.ops.imported_late", path)
    with recording(recorder):
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.log1mexp(torch.ones(2))
    (rule,) = (rule for rule in seen(recorder).values() if rule.name == "log1mexp")
    assert rule.path == path
    assert [rule.path for rule in recorder.defined.values()] == [path]


def test_a_loss_inside_fit_is_seen(recorder):
    def value(y_true, y_pred):
        return keras.ops.mean((y_true - y_pred) ** 2, axis=-1)

    def gradient(y_true, y_pred):
        return 2 * (y_pred - y_true)

    model = keras.Sequential([keras.layers.Dense(2)])
    with recording(recorder):
        model.compile("sgd", pb.loss(value, gradient))
        model.fit(np.ones((4, 3), "float32"), np.ones((4, 2), "float32"), verbose=0)
    (rule,) = seen(recorder).values()
    assert rule.name.endswith(".value")
    assert rule.path == __file__


def guided(dy, x):
    return dy


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: pb.override(tf.nn.relu, {tf.nn.relu: guided})(tf.ones([2])), "Relu"),
        (lambda: pb.override(lambda x: tf.tanh(x), {"Tanh": guided})(tf.ones([2])), "Tanh"),
        (lambda: pb.override(lambda x: torch.relu(x), {torch.relu: guided})(torch.ones(2)), "relu"),
        (lambda: pb.override(lambda x: torch.tanh(x), {"tanh": guided})(torch.ones(2)), "tanh"),
        (lambda: pb.override(lambda x: jnp.tanh(x), {jnp.tanh: guided})(jnp.ones(2)), "tanh"),
        (
            lambda: pb.override(torch.nn.Sequential(torch.nn.ReLU()), {torch.nn.ReLU: guided})(torch.ones(2)),
            "ReLU",
        ),
    ],
)
def test_an_override_is_a_rule_of_each_kind_that_it_replaces(recorder, call, kind):
    with recording(recorder):
        call()
        call()
    rule = seen(recorder)[kind]
    assert rule.path == __file__
    assert rule.function.rule.intent.reason == "overridden by guided"
    assert [sample.has_values for sample in rule.samples.values()] in ([True], [False])


def test_an_external_function_without_a_gradient_is_no_rule(recorder):
    rounded = pb.external(np.round, output=lambda x: x)
    with recording(recorder):
        pb.straight_through(rounded)(tf.ones([2]))
        pb.with_gradient(rounded, wrong)(tf.ones([2]))
    assert [rule.function.rule.intent.kind for rule in recorder.rules.values()] == ["like", "exact"]


def test_four_rules_of_one_name_say_whose(recorder):
    class First:
        @staticmethod
        @pb.custom_gradient
        def _call(x):
            return x, lambda dy: dy

    class Second:
        @staticmethod
        @pb.custom_gradient
        def _call(x):
            return x, lambda dy: dy

    def third():
        @pb.custom_gradient
        def _call(x):
            return x, lambda dy: dy

        return _call

    made = [First._call, Second._call, third()]
    elsewhere: dict = {"__name__": "package.ops", "pb": pb}
    source = "@pb.custom_gradient\ndef _call(x):\n    return x, lambda dy: dy\n"
    exec(compile(source, "ops.py", "exec"), elsewhere)
    exec(compile(source, "layers.py", "exec"), other := {**elsewhere, "__name__": "package.layers"})
    with recording(recorder):
        for rule in (*made, elsewhere["_call"], other["_call"]):
            rule(torch.ones(2))
    rules = list(recorder.rules.values())
    name_apart(rules)
    assert [rule.shown.removeprefix("test_four_rules_of_one_name_say_whose.") for rule in rules] == [
        "First._call",
        "Second._call",
        "third._call",
        "package.ops._call",
        "package.layers._call",
    ]
