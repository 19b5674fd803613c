"""Rules in a SavedModel, loaded by a process that has never heard of pullback."""

import json
import textwrap

import pytest
import tensorflow as tf
import warm

import pullback as pb

LOAD = """
    import json, os, sys
    import tensorflow as tf
    def nth(f, x, n):
        if n == 0:
            return f(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = nth(f, x, n - 1)
        return tape.gradient(y, x)
    module = tf.saved_model.load(sys.argv[1])
    x = tf.constant([0.5, -1.0, 2.0])
    print(json.dumps([nth(module.f, x, n).numpy().tolist() for n in (0, 1, 2)]))
    assert "pullback" not in sys.modules
"""


def elsewhere(path, code=LOAD):
    """Give what a fresh process prints that loads a model, line by line."""
    script = path / "load.py"
    script.write_text(textwrap.dedent(code), encoding="utf-8")
    done = warm.run(script, path)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()


@pb.custom_gradient
def cubed(x):
    square = x * x  # a residual: the second order needs it differentiated

    def grad(dy):
        return 30 * dy * square  # ten times the derivative: shows the rule survives

    return square * x, grad


@pb.custom_gradient
def explicit(x):
    def grad(dy):
        return 30 * dy * x * x, lambda ddx: 600 * dy * x * ddx

    return x * x * x, grad


def test_a_refused_second_order_stays_refused(tmp_path):
    @pb.custom_gradient(order=1)
    def first_only(x):
        return x**3, lambda dy: 30 * dy * x * x

    module = tf.Module()
    module.f = tf.function(lambda x: first_only(x), input_signature=[tf.TensorSpec([3])])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    code = (
        LOAD.replace("(0, 1, 2)", "(0, 1)")
        + """
    try:
        nth(module.f, x, 2)
    except Exception as error:
        print("refused", type(error).__name__)
    """
    )
    value, refused = elsewhere(tmp_path, code)[-2:]
    assert "[7.5, 30.0, 120.0]" in value
    assert refused.startswith("refused")


@pytest.mark.parametrize("shape", [[3], [None]], ids=["static", "unknown"])
@pytest.mark.parametrize(("rule", "second"), [(cubed, 60.0), (explicit, 600.0)], ids=["derived", "explicit"])
def test_first_and_second_order_survive_a_fresh_process(rule, second, shape, tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: rule(x), input_signature=[tf.TensorSpec(shape)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    value, first, derived = json.loads(elsewhere(tmp_path)[-1])
    assert value == pytest.approx([0.125, -1.0, 8.0])
    assert first == pytest.approx([7.5, 30.0, 120.0])
    assert derived == pytest.approx([second * x for x in (0.5, -1.0, 2.0)])
