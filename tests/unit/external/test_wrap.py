"""An external function has its value and its gradient in every framework, eagerly and compiled."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from frameworks import EVERYWHERE, vjp

import pullback as pb
from pullback.errors import DefinitionError, ExternalGradientError, OptionError

X = np.array([0.5, 1.5, -2.0])
Y = np.array([0.3, -0.7, 1.1])
DY = np.array([1.0, -2.0, 0.5])


def mixed(x, y):
    return np.cumsum(x) * np.sin(y)


def exact(dy, x, y):
    return np.cumsum((dy * np.sin(y))[::-1])[::-1], dy * np.cumsum(x) * np.cos(y)


def jacobian_of(x, y):
    return np.tril(np.ones((3, 3))) * np.sin(y)[:, None], np.diag(np.cumsum(x) * np.cos(y))


def by_pullback():
    f = pb.external(mixed, output=lambda x: x)
    f.pullback(exact)
    return f


def by_pushforward():
    f = pb.external(mixed, output=lambda x: x)
    f.pushforward(lambda dx, dy, x, y: np.cumsum(dx) * np.sin(y) + np.cumsum(x) * np.cos(y) * dy)
    return f


def sparse(x, y):
    return tuple(scipy.sparse.csr_matrix(block) for block in jacobian_of(x, y))


def operators(x, y):
    return tuple(scipy.sparse.linalg.aslinearoperator(block) for block in jacobian_of(x, y))


WAYS = {
    "pullback": by_pullback,
    "pushforward": by_pushforward,
    "jacobian": lambda: pb.external(mixed, output=lambda x: x, jacobian=jacobian_of),
    "sparse jacobian": lambda: pb.external(mixed, output=lambda x: x, jacobian=sparse),
    "operator": lambda: pb.external(mixed, output=lambda x: x, jacobian=operators),
    "central": lambda: pb.external(mixed, output=lambda x: x, gradient="central"),
    "forward": lambda: pb.external(mixed, output=lambda x: x, gradient="forward"),
    "complex-step": lambda: pb.external(mixed, output=lambda x: x, gradient="complex-step"),
    "nothing declared": lambda: pb.external(mixed, gradient="central"),
}
EXACT = 1e-12
ACCURACY = {"central": 1e-8, "forward": 1e-6, "nothing declared": 1e-8}


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_give_a_gradient_gives_it(way, framework, compiled):
    y, found = vjp(framework, WAYS[way](), X, Y, cotangent=DY, compiled=compiled)
    np.testing.assert_allclose(y, mixed(X, Y), rtol=1e-14)
    for dx, wanted in zip(found, exact(DY, X, Y)):
        np.testing.assert_allclose(dx, wanted, rtol=ACCURACY.get(way, EXACT), atol=ACCURACY.get(way, EXACT))


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
def test_partials_are_summed_over_broadcast_axes(framework, compiled):
    f = pb.external(
        lambda a, b: np.hypot(a, b),
        output=lambda a, b: a.replace(shape=(2, 3)),
        partials=[lambda a, output: a / output, lambda b, output: b / output],
    )
    a, b = np.array([[1.0], [2.0]]), np.array([3.0, 4.0, 5.0])
    _, (da, db) = vjp(framework, f, a, b, compiled=compiled)
    np.testing.assert_allclose(da, (a / np.hypot(a, b)).sum(1, keepdims=True))
    np.testing.assert_allclose(db, (b / np.hypot(a, b)).sum(0))


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_float32_stays_float32(framework):
    seen = []

    @pb.external(output=lambda x: x)
    def f(x):
        seen.append(x.dtype)
        return x * 2

    @f.pullback
    def _(dy, x):
        seen.append(dy.dtype)
        return (dy * 2).astype(np.float64)  # cast back, as every cotangent is

    y, (dx,) = vjp(framework, f, X.astype(np.float32))
    assert {y.dtype, dx.dtype, *seen} == {np.dtype(np.float32)}


def test_arrays_give_arrays():
    f = by_pullback()
    result = f(X, Y)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, mixed(X, Y))


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_statics_and_structures_pass_through(framework):
    @pb.external(output=lambda state: state["a"])
    def f(state, power, *, name="up"):
        assert name == "down"
        return state["a"] * state["b"] ** power

    @f.pullback
    def _(dy, state, power):
        a, b = state["a"], state["b"]
        return {"state": {"a": dy * b**power, "b": dy * a * power * b ** (power - 1)}}

    def g(a, b):
        return f({"a": a, "b": b}, 3, name="down")

    _, (da, db) = vjp(framework, g, X, Y)
    np.testing.assert_allclose(da, Y**3)
    np.testing.assert_allclose(db, 3 * X * Y**2)


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_several_outputs_have_a_cotangent_each(framework):
    @pb.external(output=lambda x: (x, x.replace(shape=())))
    def f(x):
        return x**2, x.sum()

    @f.pullback
    def _(dy, dtotal, x, output):
        np.testing.assert_array_equal(output[0], x**2)
        return 2 * x * dy + dtotal

    _, (dx,) = vjp(framework, lambda x: f(x)[0] + f(x)[1], X)
    np.testing.assert_allclose(dx, 2 * X + 3)


@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
def test_complex_gradients_follow_the_convention(framework):
    f = pb.external(lambda z: z**2, output=lambda z: z, gradient="central")
    z = np.array([1 + 2j, -0.5 + 1j])
    dy = np.array([1 - 1j, 2 + 0.5j])
    _, (dz,) = vjp(framework, f, z, cotangent=dy)
    np.testing.assert_allclose(dz, dy * np.conj(2 * z), rtol=1e-8)


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_no_gradient_is_an_error_with_the_choices_written_out(framework):
    f = pb.external(lambda x: x * 2, output=lambda x: x)
    np.testing.assert_array_equal(f(X), 2 * X)
    with pytest.raises(ExternalGradientError) as caught:
        vjp(framework, f, X)
    text = str(caught.value)
    for word in (
        "pullback",
        "pushforward",
        "jacobian=",
        "partials=",
        '"central"',
        '"complex-step"',
        '"spsa"',
    ):
        assert word in text


def test_integers_go_through_without_a_gradient():
    f = pb.external(lambda x, i: x[i], output=lambda x, i: x.replace(shape=i.shape))

    @f.pullback
    def _(dy, x, i):
        dx = np.zeros_like(x)
        np.add.at(dx, i, dy)
        return dx

    import tensorflow as tf

    x, i = tf.constant(X), tf.constant([2, 0, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, i)
    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 0.0, 2.0])


def test_an_output_without_a_gradient_is_just_a_value():
    import tensorflow as tf

    f = pb.external(lambda x: np.argsort(x), output=lambda x: x.replace(dtype=np.int64))
    assert f(tf.constant(X)).numpy().tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("error", "given"),
    [
        (OptionError, {"gradient": "backward"}),
        (OptionError, {"second": "spsa"}),
        (OptionError, {"nan": "ignore"}),
        (OptionError, {"retries": -1}),
        (OptionError, {"step": 0.0}),
        (DefinitionError, {"jacobian": np.eye(3)}),
        (DefinitionError, {"partials": [1]}),
        (DefinitionError, {"sparsity": np.eye(3)}),
        (DefinitionError, {"executor": 4}),
        (DefinitionError, {"second": "central", "differs": "on purpose"}),
    ],
)
def test_a_wrong_option_is_refused_when_it_is_given(error, given):
    with pytest.raises(error):
        pb.external(lambda x: x, **given)


def test_no_function_is_refused():
    with pytest.raises(DefinitionError, match="a function of NumPy arrays"):
        pb.external(3)
