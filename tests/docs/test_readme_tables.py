"""The two tables of the README are measured: each cell is the word that its probe gives, here and now."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from jax.test_util import check_grads
from torch.autograd import forward_ad
from torch.autograd.gradcheck import GradcheckError

import pullback as pb

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
X = np.array([0.5, 1.25, 2.0], "float32")


def read():
    """Give the words of the tables, by row and column."""
    found = {}
    for text in re.findall(r"(?:^\|.*\n)+", README, re.MULTILINE):
        heading, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
        for row in rows:
            found |= {(row[0], column): word for column, word in zip(heading[1:], row[1:])}
    return found


TABLES = read()


# ── custom gradients: one way to spell a rule for each column ────────────────────────────────────────────


class Closure:
    """A rule that returns its output and `grad`."""

    def __init__(self, decorator):
        self.decorator = decorator

    def rule(self, value, slope, keep=lambda *xs: xs):
        """Make a rule of `value(*xs)` and `slope(dy, *keep(*xs))`, which returns a tuple."""

        def body(x, *others):
            kept = keep(x, *others)

            def grad(dy=None, upstream=None):  # Keras names it
                found = slope(upstream if dy is None else dy, *kept)
                return found if others else found[0]

            return value(x, *others), grad

        return self.decorator(body)


class CustomVjp:
    """A jax.custom_vjp."""

    def rule(self, value, slope, keep=lambda *xs: xs):
        def plain(x, *others):
            return value(x, *others)

        made = jax.custom_vjp(plain)
        made.defvjp(lambda *xs: (value(*xs), keep(*xs)), lambda kept, dy: slope(dy, *kept))
        return made


class Function:
    """A torch.autograd.Function; what is kept stands on `ctx`."""

    def rule(self, value, slope, keep=lambda *xs: xs):
        class Rule(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, *others):
                ctx.kept = keep(x, *others)
                return value(x, *others)

            @staticmethod
            def backward(ctx, dy):
                return slope(dy, *ctx.kept)

        return Rule.apply


class TensorFlow:
    """How TensorFlow differentiates; the others have the same three functions."""

    tensor, exp, constant = staticmethod(tf.constant), staticmethod(tf.exp), staticmethod(tf.stop_gradient)

    def gradient(self, f, *xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return tape.gradient(y, xs)

    def pushed(self, f, x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = f(x)
        return accumulator.jvp(y)


class Jax:
    tensor, exp, constant = (
        staticmethod(jnp.asarray),
        staticmethod(jnp.exp),
        staticmethod(jax.lax.stop_gradient),
    )

    def gradient(self, f, *xs):
        return jax.grad(lambda *xs: f(*xs).sum(), tuple(range(len(xs))))(*xs)

    def pushed(self, f, x):
        return jax.jvp(f, [x], [jnp.ones_like(x)])[1]


class Torch:
    exp, constant = staticmethod(torch.exp), staticmethod(torch.detach)

    def tensor(self, x):
        return torch.tensor(x, requires_grad=True)

    def gradient(self, f, *xs):
        return torch.autograd.grad(f(*xs).sum(), xs, allow_unused=True, create_graph=True)

    def pushed(self, f, x):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(x.detach(), torch.ones_like(x)))).tangent


OURS = Closure(pb.custom_gradient)
COLUMNS = {
    "`pb.custom_gradient`": [(OURS, TensorFlow()), (OURS, Jax()), (OURS, Torch())],
    "`tf.custom_gradient`": [(Closure(tf.custom_gradient), TensorFlow())],
    "`jax.custom_vjp`": [(CustomVjp(), Jax())],
    "`torch.autograd.Function`": [(Function(), Torch())],
    "`keras.ops.custom_gradient`": [(Closure(keras.ops.custom_gradient), TensorFlow())],
}


def near(found, true):
    return np.allclose(
        np.asarray(found.detach() if isinstance(found, torch.Tensor) else found), true, rtol=1e-4
    )


def triple(spelling):
    """A rule of slope 3 over a function of slope 1: it shows whether the rule was used."""
    return spelling.rule(lambda x: x * 1.0, lambda dy, x: (3 * dy,))


def forward_mode(spelling, host):
    return "right" if near(host.pushed(triple(spelling), host.tensor(X)), 3) else "ignored"


def kept_intermediate(spelling, host):
    """exp(2x), times x: the forward keeps the exponential."""
    rule = spelling.rule(lambda x: host.exp(2 * x), lambda dy, e: (dy * 2 * e,), lambda x: (host.exp(2 * x),))
    (second,) = host.gradient(lambda x: host.gradient(lambda x: rule(x) * x, x)[0], host.tensor(X))
    return "right" if near(second, 4 * np.exp(2 * X) * (1 + X)) else "wrong, silently"


def not_summed(spelling, host):
    add = spelling.rule(lambda a, bias: a + bias, lambda dy, a, bias: (dy, dy))
    _, found = host.gradient(add, host.tensor(np.ones([4, 3], "float32")), host.tensor(X))
    return "taken" if found.shape == (4, 3) else "summed"


def captured_tensor(spelling, host):
    """2x·x, where 2x comes by a closure."""

    def outer(x):
        weight = 2 * x
        return spelling.rule(lambda y: y * weight, lambda dy, y: (dy * weight,))(x)

    return "right" if near(host.gradient(outer, host.tensor(X))[0], 4 * X) else "lost, silently"


def keyword(spelling, host):
    rule = triple(spelling)
    (found,) = host.gradient(lambda x: rule(x=x), host.tensor(X))
    return "right" if near(found, 3) else "bypassed, silently"


DEFINING = {
    "forward mode": forward_mode,
    "second order, with an intermediate kept": kept_intermediate,
    "a broadcast axis that was not summed": not_summed,
    "a differentiated tensor in a closure": captured_tensor,
    "called by keyword": keyword,
}


def word(probe, spelling, host):
    try:
        return probe(spelling, host)
    except pb.errors.PullbackError as error:
        return "refused, with the fix" if "\n  fix: " in str(error) else "refused"
    except (TypeError, ValueError, NotImplementedError, jax.errors.JAXTypeError):
        return "refused"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", DEFINING)
def test_custom_gradients(row, column):
    for spelling, host in COLUMNS[column]:
        assert TABLES[row, column] == word(DEFINING[row], spelling, host), type(host).__name__


# ── checks: the same mistake, given to each ──────────────────────────────────────────────────────────────


def by_tensorflow(f, x):
    """It gives two Jacobians, and no verdict."""
    claimed, measured = tf.test.compute_gradient(f, [tf.constant(x)])
    assert claimed[0].shape == measured[0].shape


def by_torch(f, x):
    try:
        return torch.autograd.gradcheck(f, [torch.tensor(x, requires_grad=True)]), ""
    except GradcheckError as error:
        return False, str(error)


def by_jax(f, x):
    try:
        check_grads(f, [jnp.asarray(x)], order=2, modes=["rev"])
    except AssertionError as error:
        return False, str(error)
    return True, ""


def by_us(f, x):
    report = pb.check(f, jnp.asarray(x), seed=1, export=False)
    return report.verdict == "right", " ".join(report.causes)


CHECKS = {
    "`pb.check`": (by_us, CustomVjp(), Jax()),
    "`tf.test.compute_gradient`": (by_tensorflow, Closure(tf.custom_gradient), TensorFlow()),
    "`torch.autograd.gradcheck`": (by_torch, Function(), Torch()),
    "`jax.test_util.check_grads`": (by_jax, CustomVjp(), Jax()),
}
WIDE = {by_torch: "float64"}  # what each is made for


def cube(spelling, slope):
    return spelling.rule(lambda x: x * x * x, lambda dy, x: (dy * slope(x),))


def passed(check, f, x, words=("accepted", "rejected")):
    said = check(f, x)
    return "no verdict" if said is None else words[not said[0]]


def right_in_float32(check, spelling, host):
    return passed(check, cube(spelling, lambda x: 3 * x * x), X)


def a_little_wrong(check, spelling, host):
    x = X.astype(WIDE.get(check, "float32"))
    return passed(check, cube(spelling, lambda x: 3.0015 * x * x), x, ("missed", "found"))


def wrong_elsewhere(check, spelling, host):
    x = X.astype(WIDE.get(check, "float32"))
    sized = {TensorFlow: tf.abs, Jax: jnp.abs, Torch: torch.abs}[type(host)]
    return passed(check, cube(spelling, lambda x: 3 * x * sized(x)), x, ("missed", "found"))


def wrong_second(check, spelling, host):
    x = X.astype(WIDE.get(check, "float32"))
    return passed(check, cube(spelling, lambda x: 3 * x * host.constant(x)), x, ("missed", "found"))


def in_words(check, spelling, host):
    x = X.astype(WIDE.get(check, "float32"))
    said = check(cube(spelling, lambda x: -3 * x * x), x)
    return "yes" if said is not None and "sign" in said[1] else "no"


CHECKING = {
    "a right function, in float32": right_in_float32,
    "a gradient that is 0.05 % too large": a_little_wrong,
    "one that is wrong only at inputs you did not give": wrong_elsewhere,
    "a wrong second order": wrong_second,
    "says in words what is wrong": in_words,
}


@pytest.mark.parametrize("column", CHECKS)
@pytest.mark.parametrize("row", CHECKING)
@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double precision")
def test_checks(row, column):
    check, spelling, host = CHECKS[column]
    assert TABLES[row, column] == CHECKING[row](check, spelling, host)


def test_second_orders_have_a_check_of_their_own_in_pytorch():
    rule = cube(Function(), lambda x: 3 * x * torch.detach(x))
    with pytest.raises(GradcheckError):
        torch.autograd.gradgradcheck(rule, [torch.tensor(X.astype("float64"), requires_grad=True)])


def test_every_cell_has_a_probe():
    probed = {(row, column) for row in DEFINING for column in COLUMNS}
    probed |= {(row, column) for row in CHECKING for column in CHECKS}
    assert set(TABLES) == probed
