"""A pushforward that somebody wrote is a claim: a rule is wrong if it fails, or is another derivative."""

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = np.array([1.5, -0.5], "float32")
QUICK = {"seed": 0, "xla": False, "export": False, "probes": ("derivative", "forward_mode")}
TENSOR = {"TensorFlow": tf.constant, "JAX": jnp.asarray, "PyTorch": torch.as_tensor}
PUSHES = {
    "right": (lambda dx, x: 2 * dx * x, "", "yes"),
    "another derivative": (lambda dx, x: 3 * dx * x, "another derivative", "no"),
    "another signature": (lambda dx: dx, "fails: GradSignatureError", "no"),
    "another shape": (lambda dx, x: 2 * x[:1] * dx[:1], "fails: CotangentShapeError", "no"),
    "another structure": (lambda dx, x: (dx, dx), "fails: CotangentCountError", "no"),
    "raises": (lambda dx, x: dx * (1 / 0), "fails: ZeroDivisionError", "no"),
    "not a number": (lambda dx, x: 2 * dx * x * float("nan"), "another derivative", "no"),
}


def missing(dx, x):
    raise NotImplementedError("only reverse mode")


def forward_mode(report):
    (finding,) = (f for f in report.findings if f.probe == "forward_mode")
    return finding


@pytest.mark.parametrize("name", PUSHES)
@pytest.mark.parametrize("host", TENSOR)
def test_a_pushforward_is_judged(host, name):
    push, said, answer = PUSHES[name]

    @pb.custom_gradient
    def square(x):
        return x * x, lambda dy: 2 * x * dy

    square.pushforward(push)
    report = pb.check(square, TENSOR[host](X), **QUICK)
    finding = forward_mode(report)
    assert (report.verdict, finding.answer) == ("wrong" if said else "right", answer)
    assert report.causes == (["forward-mode"] if said else [])
    assert said in finding.sentence


JVPS = {
    "right": (lambda ctx, dx: 2 * dx * ctx.saved_tensors[0], "right"),
    "another derivative": (lambda ctx, dx: 3 * dx * ctx.saved_tensors[0], "wrong"),
    "another signature": (lambda ctx: 0, "wrong"),
    "not offered": (missing, "right"),
}


@pytest.mark.parametrize("name", JVPS)
def test_so_is_the_jvp_of_a_function(name):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * ctx.saved_tensors[0] * dy

        jvp = staticmethod(JVPS[name][0])

    assert pb.check(Square.apply, torch.as_tensor(X), **QUICK).verdict == JVPS[name][1]


def test_what_is_not_offered_is_no_mistake():
    @pb.custom_gradient
    def square(x):
        return x * x, lambda dy: 2 * x * dy

    square.pushforward(missing)
    report = pb.check(square, torch.as_tensor(X), **QUICK)
    assert (report.verdict, forward_mode(report).answer) == ("right", "refused")
