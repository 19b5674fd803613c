"""What the README says of `tf.custom_gradient` and of pullback is true, in eager mode and in graphs."""

import gc
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def x():
    return tf.constant([1.0, 2.0, 3.0])


def slope(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.gradient(y, inputs[-1])


def triple(decorator):
    """A rule of slope 3 over a function of slope 1: it shows whether the rule was used."""

    @decorator
    def rule(x):
        def grad(dy):
            return 3 * dy

        return tf.identity(x), grad

    return rule


def test_keywords(x):
    def by_keyword(decorator):
        rule = triple(decorator)
        return lambda x: rule(x=x)

    native, ours = by_keyword(tf.custom_gradient), by_keyword(pb.custom_gradient)
    np.testing.assert_array_equal(slope(native, x), [1, 1, 1])  # bypassed
    with pytest.raises(ValueError, match="keyword"):
        tf.function(native)(x)
    for function in (ours, tf.function(ours)):
        np.testing.assert_array_equal(slope(function, x), [3, 3, 3])


def test_one_keyword(x):
    @tf.custom_gradient
    def native(a, b):
        def grad(dy):
            return dy * b  # one more is refused: TensorFlow counts the positional arguments

        return a * b, grad

    @pb.custom_gradient
    def ours(a, b):
        def grad(dy):
            return dy * b, dy * a

        return a * b, grad

    assert slope(lambda a, b: native(a, b=b), 2 * x, x) is None
    np.testing.assert_array_equal(slope(lambda a, b: ours(a, b=b), 2 * x, x), 2 * x)


def test_shape(x):
    def add(decorator):
        @decorator
        def rule(a, bias):
            def grad(dy):
                return dy, dy

            return a + bias, grad

        return rule

    table = tf.ones([4, 3])
    assert slope(add(tf.custom_gradient), table, x).shape == (4, 3)
    with pytest.raises(
        pb.errors.CotangentShapeError, match=r"axis 0[^$]*pb\.unbroadcast\(dbias, like=bias\)"
    ):
        slope(add(pb.custom_gradient), table, x)


def test_captured_tensor(x):
    def scaled(decorator):
        def function(x):
            weight = 2 * x

            @decorator
            def rule(y):
                def grad(dy):
                    return dy * weight

                return weight * y, grad

            return rule(x)

        return function

    # 2x·x, of which only the factor that is an argument has a gradient: 2x instead of 4x
    np.testing.assert_array_equal(slope(scaled(tf.custom_gradient), x), 2 * x)
    with pytest.raises(pb.errors.CapturedTensorError, match="`weight`"):
        slope(scaled(pb.custom_gradient), x)


def test_forward_mode(x):
    def push(function):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = function(x)
        return accumulator.jvp(y)

    np.testing.assert_array_equal(push(triple(tf.custom_gradient)), [1, 1, 1])
    np.testing.assert_array_equal(push(triple(pb.custom_gradient)), [3, 3, 3])

    @pb.custom_gradient(differs="clipped")
    def calm(x):
        def grad(dy):
            return tf.clip_by_value(dy, -1.0, 1.0)

        return tf.identity(x), grad

    with pytest.raises(pb.errors.ForwardModeError):
        push(calm)


def test_tensor_if(x):
    def signed(decorator):
        @decorator
        def rule(x):
            y = x
            if tf.reduce_sum(x) > 0:
                y = 2 * x

            def grad(dy):
                return 2 * dy

            return y, grad

        return rule

    native, ours = signed(tf.custom_gradient), signed(pb.custom_gradient)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(native)(x)
    np.testing.assert_array_equal(tf.function(ours)(x), ours(x))
    np.testing.assert_array_equal(slope(tf.function(ours), x), [2, 2, 2])


def test_tape_memory(x):
    def kept(decorator):
        """Tell whether a tape keeps an intermediate that `grad` does not use."""
        seen = []

        @decorator
        def rule(x):
            middle = tf.exp(x)
            seen.append(weakref.ref(middle))

            def grad(dy):
                return dy * x

            return tf.square(middle), grad

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rule(x)
        gc.collect()
        alive = seen[0]() is not None
        assert tape.gradient(y, x) is not None
        return alive

    assert kept(tf.custom_gradient)
    assert not kept(pb.custom_gradient)


def test_static(x):
    def power(decorator):
        @decorator
        def rule(x, exponent):
            def grad(dy):
                return dy * exponent * x ** (exponent - 1)

            return x**exponent, grad

        return lambda x: rule(x, 3)

    with pytest.raises(ValueError, match="gradient"):
        slope(power(tf.custom_gradient), x)
    np.testing.assert_array_equal(slope(power(pb.custom_gradient), x), 3 * x**2)


def test_first_example():
    space = {"__name__": "readme"}
    exec(re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], space)
    x = tf.constant(100.0)
    assert slope(space["log1pexp"], x).numpy() == 1.0
    assert np.isnan(slope(lambda x: tf.math.log(1 + tf.exp(x)), x))
    assert slope(tf.function(space["log1pexp"], jit_compile=True), x).numpy() == 1.0


@pytest.mark.parametrize(("name", "extra"), [("main", "examples"), ("test", "test")])
def test_commands_can_be_found(name, extra):
    found = re.findall(rf"<!-- command: {name} -->\n```console\n\$ ([^\n]+)\n```\n", README)
    assert len(found) == 1
    assert found[0].startswith(f'python -m venv .venv && .venv/bin/pip install -q -e ".[{extra}]" && ')


def test_the_main_command_installs_one_framework():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"^examples = (\[.*\])$", project, re.MULTILINE)
    assert "tensorflow-cpu" in wanted
    assert not re.search("jax|torch", wanted)


def test_folders_and_extras_that_are_named_exist():
    extras = set(re.findall(r'-e "\.\[([\w,]+)\]"', README))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in {name for names in extras for name in names.split(",")}:
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
    for folder in re.findall(r"examples/\w+/", README):
        assert list((ROOT / folder).glob("*.py")), folder


def test_readme_is_short():
    assert len(README.splitlines()) <= 80
