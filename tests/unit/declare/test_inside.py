"""A surrogate inside of a rule excuses what it explains, and nothing else: the rule around it is compared."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = np.array([0.6, -1.2, 2.3], "float32")
QUICK = {"seed": 1, "xla": False, "export": False, "probes": ("contract", "derivative", "linearity")}


@pb.custom_gradient(differs="straight-through")
def rounded(x):
    return pb.namespace(x).round(x), lambda dy: dy


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, dy):
        return dy


pb.declare(Rounded, differs="straight-through")


def by_tensorflow(forward, gradient):
    return tf.custom_gradient(lambda x: (forward(x), lambda dy: gradient(x, dy)))


def by_jax(forward, gradient):
    rule = jax.custom_vjp(forward)
    rule.defvjp(lambda x: (forward(x), x), lambda x, dy: (gradient(x, dy),))
    return rule


def by_torch(forward, gradient):
    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, dy):
            return gradient(*ctx.saved_tensors, dy)

    return Rule.apply


HOSTS = {
    "TensorFlow": (by_tensorflow, tf.constant, rounded),
    "JAX": (by_jax, jnp.asarray, rounded),
    "PyTorch": (by_torch, torch.as_tensor, rounded),
    "PyTorch's own": (by_torch, torch.as_tensor, Rounded.apply),
}
# The forward, the gradient, and the cause if it is wrong; `r` is the surrogate.
RULES = {
    "believed": (lambda r, x: r(x) * x, lambda r, x, dy: dy * (x + r(x)), ""),
    "exact beside it": (lambda r, x: 0 * r(x) + x**3, lambda r, x, dy: 3 * dy * x**2, ""),
    "a factor too many": (lambda r, x: r(x) * x, lambda r, x, dy: 2 * dy * (x + r(x)), "constant-factor"),
    "wrong beside it": (lambda r, x: 0 * r(x) + x**3, lambda r, x, dy: 2 * dy * x**2, "constant-factor"),
    "without upstream": (lambda r, x: r(x) + x**2, lambda r, x, dy: 1 + 2 * x, "upstream-ignored"),
    "zero": (lambda r, x: r(x) + x**2, lambda r, x, dy: 0 * dy, "missing-term"),
    "wrong below -3": (lambda r, x: r(x) * x, lambda r, x, dy: dy * (x + r(x)) * below(x), "wrong-region"),
    "a factor around a step": (lambda r, x: 2 * r(3 * x), lambda r, x, dy: 2 * dy, "constant-factor"),
}


def below(x):
    return 1 + abs(x + 3) - (x + 3)  # one down to -3


def written(host, rule):
    make, tensor, inner = HOSTS[host]
    forward, gradient, _ = RULES[rule]

    def pulled(x, dy):
        return gradient(lambda x: _round(host, x), x, dy)

    return make(lambda x: forward(inner, x), pulled), tensor(X)


def _round(host, x):
    return {"TensorFlow": tf.round, "JAX": jnp.round}.get(host, torch.round)(x)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("host", HOSTS)
def test_a_native_rule_around_a_surrogate_is_compared(host, rule):
    function, x = written(host, rule)
    report = pb.check(function, x, **QUICK)
    cause = RULES[rule][2]
    assert report.verdict == ("wrong" if cause else "right"), report
    assert [finding.cause for finding in report.failures][:1] == [cause] * bool(cause), report
    assert "it uses" in report.intent
