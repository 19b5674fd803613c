"""A rule is its function, its gradient and what tells its closures apart, on every framework."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback import configuration
from pullback.record.listening import recording
from pullback.record.naming import name_apart
from pullback.record.recorder import VARIANTS, Recorder


@pytest.fixture
def recorder():
    return Recorder()


def in_tensorflow(a):
    @tf.custom_gradient
    def scaled(x):
        return a * x, lambda dy: a * dy

    return scaled


def in_jax(a):
    @jax.custom_vjp
    def scaled(x):
        return 2.0 * x

    scaled.defvjp(lambda x: (2.0 * x, None), lambda _, g: (a * g,))
    return scaled


def in_forward_mode(a):
    scaled = jax.custom_jvp(lambda x: 2.0 * x)
    scaled.defjvps(lambda t, out, x: a * t)
    return scaled


def in_torch(a):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return a * x

        @staticmethod
        def backward(ctx, g):
            return a * g

    return Scaled.apply


def by_class_attribute(a):
    base = in_torch(2.0).__self__
    return type("Named", (base,), {"factor": a}).apply


def in_pullback(a):
    @pb.custom_gradient
    def scaled(x):
        return x * 2.0, lambda dy: dy * a

    return scaled


def twice(x):
    return x * 2.0


def replaced(a):
    return pb.with_gradient(twice, lambda dy, x: dy * a)


def by_partial(a):
    def pull(dy, x, factor):
        return dy * factor

    return pb.with_gradient(twice, functools.partial(pull, factor=a))


def element_by_element(a):
    return pb.elementwise(twice, lambda x: a + 0 * x)


def external(a):
    function = pb.external(lambda x: 2.0 * x, output=lambda x: x)
    function.pullback(lambda dy, x: dy * a)
    return function


def by_object(a):
    settings = SimpleNamespace(factor=a, seen=[])

    @pb.custom_gradient
    def scaled(x):
        return x * 2.0, lambda dy: dy * settings.factor

    return scaled


def by_default(a):
    @pb.custom_gradient
    def scaled(x, *, factor=a):
        return x * 2.0, lambda dy: dy * factor

    return scaled


FACTORIES = {
    in_tensorflow: tf.ones([2]), in_jax: jnp.ones(2), in_forward_mode: jnp.ones(2), in_torch: torch.ones(2),
    by_class_attribute: torch.ones(2), in_pullback: torch.ones(2), replaced: jnp.ones(2),
    by_partial: tf.ones([2]), element_by_element: tf.ones([2]), external: torch.ones(2),
    by_object: torch.ones(2), by_default: tf.ones([2]),
}  # fmt: skip


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda f: f.__name__)
def test_a_factory_makes_one_rule_a_number_however_often_it_is_run(recorder, factory):
    with recording(recorder):
        for _ in range(20):
            for a in (2.0, 3.0):
                factory(a)(FACTORIES[factory])
    assert recorder.errors == []
    assert [rule.calls for rule in recorder.rules.values()] == [20, 20]
    assert not recorder.more


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda f: f.__name__)
def test_rules_of_a_factory_have_names_of_their_own(recorder, factory):
    with recording(recorder):
        for a in (2.0, 3.0):
            factory(a)(FACTORIES[factory])
    rules = list(recorder.rules.values())
    name_apart(rules)
    assert len({rule.shown for rule in rules}) == 2


def test_the_number_that_tells_them_apart_is_in_the_name(recorder):
    with recording(recorder):
        for a in (2.0, -3.0):
            in_tensorflow(a)(tf.ones([2]))
    rules = list(recorder.rules.values())
    name_apart(rules)
    assert [rule.shown for rule in rules] == ["in_tensorflow.scaled[a=2.0]", "in_tensorflow.scaled[a=-3.0]"]


def test_the_function_that_is_kept_is_the_one_that_saw_the_values(recorder):
    arrays = [np.ones(2, np.float32) * n for n in (1, 5)]
    with recording(recorder):
        for i, array in enumerate(arrays):
            in_pullback(tf.constant(array))(tf.ones([2 + i, 2]))
    (rule,) = recorder.rules.values()  # a tensor in a closure is told by its shape and dtype
    for sample, array in zip(rule.samples.values(), arrays):
        x = tf.ones([1, 2])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = sample.function(x)
        np.testing.assert_array_equal(tape.gradient(y, x)[0], array)


def test_a_rule_made_in_every_step_of_an_object_is_one(recorder):
    class Trainer:
        def __init__(self):
            self.scale = 2.0
            self.steps = 0
            self.losses = []

        def step(self, x):
            self.steps += 1

            @pb.custom_gradient
            def scaled(x):
                return x * self.scale, lambda dy: dy * self.scale

            self.losses.append(float(scaled(x).sum()))

    trainer = Trainer()
    with recording(recorder):
        for i in range(50):
            trainer.step(torch.ones(3) * i)
    (rule,) = recorder.rules.values()
    assert rule.calls == 50


def test_methods_of_one_object_are_one_rule_and_of_another_one_another(recorder):
    class Layer:
        def __init__(self, sign):
            self.sign = sign

        @tf.custom_gradient
        def call(self, x):
            return x * 2, lambda dy: dy * 2 * self.sign

    layers = [Layer(1), Layer(-1), Layer(1)]
    with recording(recorder):
        for _ in range(3):
            for layer in layers:
                layer.call(tf.ones([2]))
    assert [rule.calls for rule in recorder.rules.values()] == [6, 3]


def test_lambdas_of_one_line_are_told_apart(recorder):
    rules = {"a": jax.custom_gradient(lambda x: (x, lambda g: g)), "b": jax.custom_gradient(lambda x: (x, lambda g: -g))}  # fmt: skip  # noqa: E501
    with recording(recorder):
        for rule in rules.values():
            rule(jnp.ones(2))
    assert len(recorder.rules) == 2


def test_what_is_beyond_the_number_of_variants_is_counted(recorder):
    with recording(recorder):
        for i in range(VARIANTS + 37):
            in_tensorflow(float(i))(tf.ones([2]))
    assert len(recorder.rules) == VARIANTS
    assert [len(keys) for keys in recorder.more.values()] == [37]


def test_a_counter_in_a_closure_does_not_make_another_rule_of_it(recorder):
    count = 0

    @pb.custom_gradient
    def counted(x):
        nonlocal count
        count += 1
        return x * 2.0, lambda dy: dy * 2.0

    with recording(recorder):
        for _ in range(5):
            counted(torch.ones(2))
    (rule,) = recorder.rules.values()
    assert (rule.calls, count) == (5, 5)


def test_definitions_are_told_apart_without_a_call(recorder):
    with recording(recorder):
        for _ in range(30):
            for a in (1.0, 2.0):
                in_jax(a), in_torch(a), in_tensorflow(a), external(a)
    assert len(recorder.defined) == 8


def test_the_key_is_the_same_in_another_process():
    import subprocess
    import sys

    code = (
        "import pullback as pb\n"
        "from pullback.record.identity import identity_of\n"
        "from pullback.view.definition import Own\n"
        "def make(a):\n"
        "    @pb.custom_gradient\n"
        "    def f(x, n={'u', 'v'}):\n"
        "        if n in {'a', 'b', 'c'}:\n"
        "            return x, lambda dy: dy\n"
        "        return x * a, lambda dy: dy * a\n"
        "    return f\n"
        "print(identity_of(Own(make(2.0))).key)\n"
    )
    keys = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in "12"
    }
    assert len(keys) == 1


def test_a_rule_of_a_factory_is_declared_by_what_it_holds(recorder, tmp_path, monkeypatch):
    with recording(recorder):
        for a in (2.0, 3.0):
            in_jax(a)(jnp.ones(2))
    rules = list(recorder.rules.values())
    name_apart(rules)
    meant = next(rule for rule in rules if "3.0" in rule.shown)
    key = meant.declared_as
    assert key.endswith("in_jax.scaled[a=3.0]")
    other = key.replace("3.0", "4.0")
    path = tmp_path / "pullback.toml"
    path.write_text(f'[rules."{key}"]\ndiffers = "scaled"\n[rules."{other}"]\nskip = "none"\n')
    known = configuration.load(str(path))
    monkeypatch.setattr(configuration, "_used", [known])
    assert [rule.said().intent is not None for rule in rules] == [rule is meant for rule in rules]
    assert not any(rule.said().skip for rule in rules)
    assert configuration.heard(known, [rule.named for rule in rules])[0] == [key]
