"""What `check` promises, on every host alike."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
import warm

import pullback as pb
import pullback.checker
from pullback.errors import NoTensorError, WrongGradientError

TENSOR = {"TensorFlow": tf.constant, "JAX": jnp.asarray, "PyTorch": torch.as_tensor}
X = np.array([0.5, -1.0, 2.0], "float32")
QUICK = {"seed": 1, "xla": False, "export": False}


@pytest.fixture(params=TENSOR)
def tensor(request):
    """Make a tensor of each framework in turn."""
    return TENSOR[request.param]


@pytest.fixture
def narrow():
    """Put JAX's precision back, which code to paste may set."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pb.custom_gradient
def sine(x):
    xp = pb.namespace(x)
    return xp.sin(x), lambda dy: xp.cos(x)  # without dy


@pb.custom_gradient
def power(p, x, *, n):
    return p["scale"] * x**n, lambda dy: ({"scale": dy * x**n}, dy * p["scale"] * x ** (n - 1))  # without n


@pb.custom_gradient
def bias(x, b):
    return x + b, lambda dy: (dy, dy)  # not summed


def printed(report, **names):
    """Run the code of a report; give what it prints first."""
    shown = []
    exec(report.failures[0].reproducer, {"print": shown.append, **names})
    leaves = pb.tree.flatten(shown[0])[0]
    return [np.asarray(g.detach() if isinstance(g, torch.Tensor) else g) for g in leaves]


def test_code_to_paste_shows_the_wrong_number(tensor, narrow):
    report = pb.check(sine, tensor(X), **QUICK)
    assert report.causes == ["upstream-ignored"]
    (found,) = printed(report, sine=sine)
    np.testing.assert_allclose(found, np.cos(X), rtol=1e-6)


def test_code_to_paste_knows_structures_keywords_and_statics(tensor, narrow):
    p = {"scale": tensor(np.array([1.5, 2.0, 0.5], "float32"))}
    report = pb.check(power, p, tensor(X), n=3, **QUICK)
    assert report.causes == ["constant-factor"]
    assert "power({'scale': x0}, x1, n=3)" in report.failures[0].reproducer
    by_scale, by_x = printed(report, power=power)
    scale = np.array([1.5, 2.0, 0.5])
    np.testing.assert_allclose(by_x / by_scale, scale / X, rtol=1e-5)


@pytest.mark.parametrize(
    ("host", "edit"),
    [
        ("TensorFlow", "`tf.reduce_sum(g, axis=[0])`"),
        ("JAX", "`jnp.sum(g, axis=[0])`"),
        ("PyTorch", "`g.sum(dim=[0])`"),
    ],
)
def test_edits_are_in_the_language_of_the_host(host, edit):
    x, b = (TENSOR[host](np.ones(shape, "float32")) for shape in ((4, 3), (3,)))
    report = pb.check(bias, x, b, **QUICK)
    assert report.causes == ["broadcast-not-reduced"]
    assert report.failures[0].edit == f"{edit}, or `pb.unbroadcast(g, like=b)`"


def test_inputs_are_named_after_parameters_and_paths(tensor):
    report = pb.check(lambda p, x: x * p["w"][1], {"w": (tensor(X), tensor(X))}, tensor(X), **QUICK)
    notes = [f.sentence for f in report.findings if f.probe == "contract"]
    silent = ["no gradient flows to `p['w'][0]` (None)"]
    assert notes == ([] if tensor is jnp.asarray else silent)  # JAX has zeros there


def test_an_assertion_fails_with_the_report(tensor):
    with pytest.raises(WrongGradientError, match="upstream gradient"):
        pb.testing.assert_gradient(sine, tensor(X), **QUICK)
    pb.testing.assert_gradient(lambda x: x * x, tensor(X), **QUICK)


@pytest.mark.parametrize(
    ("function", "x", "sentence"),
    [
        (lambda x: x * 2, np.array([1, 2]), "no input is floating or complex"),
        (lambda x: x * 2, np.array([np.nan, 1.0], "float32"), "not finite"),
        (lambda x: x * 2, np.zeros([0], "float32"), "no entries"),
        (lambda x: x * np.random.default_rng().normal(), X, "another value on a second call"),
        (lambda x: None, X, "no floating or complex tensor"),
        (lambda x: {"name": "x", "positive": x > 0}, X, "no floating or complex tensor"),
    ],
    ids=["integers", "NaN", "empty", "random", "None", "no floating output"],
)
def test_what_cannot_be_decided_says_why(tensor, function, x, sentence):
    report = pb.check(function, tensor(x), **QUICK)
    assert report.verdict == "undecided"
    assert any(sentence in f.sentence for f in report.findings)


def test_what_raises_by_itself_raises(tensor):
    with pytest.raises(ZeroDivisionError):
        pb.check(lambda x: 1 / 0, tensor(X), seed=1)


def test_no_tensor_at_all_is_an_error():
    with pytest.raises(NoTensorError, match="nothing to differentiate"):
        pb.check(lambda x: x, 3)


def test_a_rule_that_is_different_on_purpose_is_not_wrong(tensor):
    @pb.custom_gradient(differs="straight-through")
    def rounded(x):
        return pb.namespace(x).round(x), lambda dy: dy

    report = pb.check(lambda x: rounded(x) * 2, tensor(X), **QUICK)
    assert report.verdict == "right"
    assert "it uses rounded" in report.intent


def test_an_input_that_gets_none_on_purpose_is_a_constant_at_second_order_too(tensor):
    @pb.custom_gradient(differs="the target is a constant")
    def squared_error(x, target):
        return (x - target) ** 2, lambda dy: (2 * dy * (x - target), None)

    report = pb.check(squared_error, tensor([1.0, 2.0]), tensor([0.5, 3.0]), seed=0)
    assert report.verdict == "right"
    assert report.capabilities["second order"] == "yes"


def test_a_rule_like_another_function_is_compared_with_it(tensor):
    def spike(x):
        xp = pb.namespace(x)
        return xp.where(x > 0, x * 0 + 1, x * 0), lambda dy: dy * (1 - xp.tanh(x) ** 2)

    def tanh(x):
        return pb.namespace(x).tanh(x)

    def sin(x):
        return pb.namespace(x).sin(x)

    assert pb.check(pb.custom_gradient(like=tanh)(spike), tensor(X), **QUICK).verdict == "right"
    assert pb.check(pb.custom_gradient(like=sin)(spike), tensor(X), **QUICK).verdict == "wrong"


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_weights_of_a_keras_layer_are_inputs_on_every_backend(backend):
    script = Path(__file__).with_name("keras_layer.py")
    done = warm.run(script, env={"KERAS_BACKEND": backend}, modules=[backend, "pullback"])
    assert done.stdout.strip() == "['constant-factor'] True [[1.0, 1.0, 1.0]]", done.stderr[-2000:]


def test_arguments_by_keyword_are_matched_in_the_order_of_the_signature(tensor):
    @pb.custom_gradient
    def affine(x, weight, bias):
        def grad(dy):
            return dy * weight, pb.unbroadcast(dy * x, like=weight), pb.unbroadcast(dy, like=bias)

        return x * weight + bias, grad

    x, weight, bias = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([2.0, 0.5]), tensor([0.1, 0.3])
    report = pb.check(
        affine, weight=weight, x=x, bias=bias, seed=1, probes=["contract", "used", "derivative"]
    )
    assert report.verdict == "right"
    assert not [finding for finding in report.findings if finding.verdict == "wrong" or finding.cause]
