"""Forward mode: the transpose of a linear pullback, the user's pushforward, or a refusal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pullback as pb
from pullback.errors import CotangentShapeError, ForbiddenGradientError, ForwardModeError


def host(dy):
    return jax.pure_callback(
        np.asarray, jax.ShapeDtypeStruct(dy.shape, dy.dtype), dy, vmap_method="sequential"
    )


NOT_LINEAR = {
    "a branch": (lambda dy: jnp.where(dy > 0, dy, 0.0), "not linear in its cotangents"),
    "a square": (lambda dy: dy * dy, "not linear in its cotangents"),
    "a constant": (lambda dy: dy + 1.0, "not linear in its cotangents"),
    "a clip": (lambda dy: jnp.clip(dy, -10.0, 10.0), "not linear in its cotangents"),
    "a host function": (host, "not known to be linear"),
}


@pytest.mark.parametrize(("grad", "words"), NOT_LINEAR.values(), ids=NOT_LINEAR.keys())
def test_a_pullback_that_is_not_linear_stays_reverse_only_and_says_so(grad, words, mode):
    @pb.custom_gradient
    def f(x):
        return 2 * x, grad

    x, dy = jnp.array([1.0, -2.0]), jnp.array([3.0, 4.0])
    _, pull = jax.vjp(f, x)
    np.testing.assert_allclose(mode(lambda dy: pull(dy)[0])(dy), grad(dy))
    np.testing.assert_allclose(mode(jax.grad(lambda x: (f(x) * dy).sum()))(x), grad(dy))
    with pytest.raises(ForwardModeError, match=words) as raised:
        mode(lambda x: jax.jvp(f, (x,), (x,)))(x)
    assert "@f.pushforward" in str(raised.value)
    with pytest.raises(ForwardModeError):
        jax.linearize(f, x)[1](x)


def test_the_refusal_has_the_words_of_every_host():
    @pb.custom_gradient
    def f(x):
        return x, lambda dy: dy * dy

    with pytest.raises(ForwardModeError) as raised:
        jax.jvp(f, (1.0,), (1.0,))
    text = str(raised.value)
    assert "forward mode was asked for, and the pullback is not linear in its cotangents" in text
    assert "a pullback that is linear in its cotangents, or a pushforward of its own" in text
    assert "the transpose of a map that is not linear is a wrong number" in text


def test_a_pushforward_wins_over_the_transpose(mode):
    @pb.custom_gradient
    def f(x, n):
        return x**n, lambda dy: dy * n * x ** (n - 1)

    @f.pushforward
    def _(dx, x, n):
        return 100 * dx * x

    x = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(mode(lambda x: jax.jvp(lambda x: f(x, 3), (x,), (x,))[1])(x), 100 * x * x)
    np.testing.assert_allclose(mode(jax.grad(lambda x: f(x, 3).sum()))(x), 3 * x**2)
    np.testing.assert_allclose(jax.vmap(lambda x: jax.jvp(lambda x: f(x, 3), (x,), (x,))[1])(x), 100 * x * x)
    # its own derivative is that of the pushforward
    assert float(jax.jacfwd(jax.jacfwd(lambda x: f(x, 3)))(2.0)) == pytest.approx(100.0)


def test_a_pushforward_may_move_some_arguments_only(mode):
    @pb.custom_gradient
    def f(x, i, w):
        return x[i] * w, lambda dy: (jnp.zeros_like(x).at[i].add((dy * w).sum()), None, (dy * x[i]))

    @f.pushforward
    def _(dx, di, dw, x, i, w):
        return dx[i] * w + dw * x[i]

    x, i = jnp.array([1.0, 2.0]), jnp.array(1)
    assert float(mode(lambda w: jax.jvp(lambda w: f(x, i, w), (w,), (w,))[1])(jnp.asarray(3.0))) == 6.0


def test_a_pushforward_of_another_shape_is_refused(mode):
    @pb.custom_gradient
    def f(x):
        return 2 * x, lambda dy: 2 * dy

    @f.pushforward
    def _(dx, x):
        return dx.sum()

    with pytest.raises(CotangentShapeError, match="pushforward"):
        mode(lambda x: jax.jvp(f, (x,), (x,)))(jnp.ones(3))


def test_a_rule_inside_the_pullback_is_measured_to_be_linear(mode):
    @pb.custom_gradient
    def f(x):
        return 2 * x, lambda dy: pb.scale_gradient(2 * dy, 3.0)

    assert float(mode(lambda x: jax.jvp(f, (x,), (x,))[1])(1.5)) == pytest.approx(3.0)


def test_a_derivative_that_nobody_uses_is_not_asked_for():
    x = jnp.ones(3)
    for mode in (lambda f: f, jax.jit):
        got = mode(jax.grad(lambda x: (x * jax.lax.stop_gradient(pb.forbid_gradient(x))).sum()))(x)
        assert got.tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(ForbiddenGradientError):
            mode(jax.grad(lambda x: pb.forbid_gradient(x).sum()))(x)


def solved(x, dy):
    return jnp.linalg.solve(jnp.diag(x) + 1.0, dy)


LINEAR = {
    "a mask": lambda x, dy: jnp.where(x > 1, 2 * dy, 0.0),
    "a scatter": lambda x, dy: jnp.zeros_like(x).at[jnp.array([2, 0, 2])].add(dy),
    "a part that is set": lambda x, dy: jnp.zeros_like(x).at[1:].set(x[1:] * dy[1:]),
    "a branch": lambda x, dy: jax.lax.cond(x[0] > 0, lambda d: 2 * d, lambda d: d * x, dy),
    "a loop": lambda x, dy: jax.lax.scan(lambda c, w: (c + w * dy, None), jnp.zeros_like(x), x)[0],
    "a mean": lambda x, dy: dy - dy.mean() + jnp.cumsum(dy[::-1]),
    "a product": lambda x, dy: jnp.outer(x, x) @ dy,
    "a solver": solved,
    "a transform": lambda x, dy: jnp.fft.irfft(x[0] * jnp.fft.rfft(dy), 3),
    "parts": lambda x, dy: jnp.concatenate([jnp.stack([dy[2], x[0] * dy[0]]), jnp.zeros(1)]),
    "a gradient": lambda x, dy: jax.vjp(jnp.sin, x)[1](dy)[0],
    "a rule": lambda x, dy: pb.scale_gradient(dy, 1.0) * x,
}


@pytest.mark.parametrize("pull", LINEAR.values(), ids=LINEAR.keys())
def test_a_linear_pullback_is_transposed(pull, mode):
    @pb.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: pull(x, dy)

    x, t = jnp.array([0.5, 1.5, 2.5]), jnp.array([1.0, -2.0, 3.0])
    rows = jax.vmap(lambda dy: pull(x, dy))(jnp.eye(3))
    np.testing.assert_allclose(mode(lambda x: jax.jvp(f, (x,), (t,))[1])(x), rows @ t, atol=1e-9)


LINEAR_IN_PLACES = {
    "a clip where x is large": lambda x, dy: jnp.where(x > 2, jnp.clip(dy, -1, 1), dy),
    "a clip in a branch": lambda x, dy: jax.lax.cond(
        x[0] > 2, lambda d: jnp.clip(d, -1, 1), lambda d: 2 * d, dy
    ),
    "a constant where x is large": lambda x, dy: dy + jnp.where(x > 2, 1.0, 0.0),
    "a clip of huge cotangents": lambda x, dy: jnp.clip(dy, -1e8, 1e8),
    "a loop that starts elsewhere": lambda x, dy: jax.lax.scan(lambda c, _: (c + dy, None), x - x[0], x)[0],
    "a loop that adds later": lambda x, dy: jax.lax.scan(
        lambda c, _: ((c[0] + 1.0, c[1] + c[0]), None), (0.0 * x, dy), x
    )[0][1],
    "a rounding": lambda x, dy: dy.astype(int).astype(dy.dtype),
}


@pytest.mark.parametrize("pull", LINEAR_IN_PLACES.values(), ids=LINEAR_IN_PLACES.keys())
def test_a_pullback_that_is_linear_in_places_is_refused_everywhere(pull, mode):
    @pb.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: pull(x, dy)

    for x in (jnp.array([0.5, 0.5]), jnp.array([4.0, 5.0])):
        with pytest.raises(ForwardModeError, match="not linear in its cotangents"):
            mode(lambda x: jax.jvp(f, (x,), (x,)))(x)


def test_a_grad_that_takes_another_way_is_judged_again(mode):
    clipped = False

    @pb.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: jnp.clip(dy, -1, 1) if clipped else dy

    x = jnp.array([3.0])
    assert mode(lambda x: jax.jvp(f, (x,), (x,))[1])(x).tolist() == [3.0]
    clipped = True
    with pytest.raises(ForwardModeError):
        mode(lambda x: jax.jvp(f, (x,), (x,))[1])(x)


@pytest.mark.parametrize("around", [lambda f: f, jax.vmap], ids=["plain", "vmap"])
def test_a_linear_map_has_the_output_of_the_run_it_was_made_of(around, mode):
    rate, shift = 2.0, np.array([0.0, 1.0])
    grown = pb.elementwise(lambda x, k: jnp.exp(rate * x + shift[0]) * k, grown_partials)
    x, k = jnp.array([0.5, 1.0]), jnp.array([1.0, 3.0])
    y, push = jax.linearize(mode(around(grown)), x, k)
    rate, shift[:] = 5.0, 7.0
    np.testing.assert_allclose(push(x, k), 2.0 * y * x + y)
    np.testing.assert_allclose(push(x, 0 * k), 2.0 * y * x)


def grown_partials(x, k, output):
    return 2.0 * output, output / k


def through(rule):
    @pb.custom_gradient
    def f(x):
        return jnp.sin(x), lambda dy: rule(dy, x) * jnp.cos(x)

    return f


@pb.custom_gradient(differs="the derivative of its second argument is doubled")
def product(dy, x):
    return dy * x, lambda d: (5 * d * x, 2 * d * dy)


@jax.custom_jvp
def native(dy):
    return 2 * dy


native.defjvp(lambda primals, tangents: (native(*primals), 7 * tangents[0]))
MET = {
    "scaled": (lambda dy, x: pb.scale_gradient(dy, 3.0), lambda x: 1.0),
    "scaled in a jit": (lambda dy, x: jax.jit(lambda dy: pb.scale_gradient(dy, 3.0))(dy), lambda x: 1.0),
    "reversed": (lambda dy, x: pb.reverse_gradient(dy), lambda x: 1.0),
    "native": (lambda dy, x: native(dy), lambda x: 2.0),
    "a product": (product, lambda x: x),
}


@pytest.mark.parametrize(("rule", "factor"), MET.values(), ids=MET.keys())
def test_a_rule_that_the_cotangents_meet_is_transposed_by_what_it_computes(rule, factor, mode):
    x, dx = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    f = through(rule)
    expected = factor(x) * jnp.cos(x) * dx
    np.testing.assert_allclose(mode(lambda x: jax.vjp(f, x)[1](dx)[0])(x), expected, rtol=1e-6)
    np.testing.assert_allclose(mode(lambda x: jax.jvp(f, (x,), (dx,))[1])(x), expected, rtol=1e-6)
    np.testing.assert_allclose(mode(lambda x: jax.linearize(f, x)[1](dx))(x), expected, rtol=1e-6)


def test_such_a_rule_is_asked_about_its_other_operands():
    x, one = jnp.array([1.0, 2.0]), jnp.ones(2)

    def tangent(x):
        return jax.jvp(through(product), (x,), (one,))[1]

    def pulled(x):
        return jax.vjp(through(product), x)[1](one)[0]

    expected = 2 * jnp.cos(x) - x * jnp.sin(x)
    np.testing.assert_allclose(jax.jvp(pulled, (x,), (one,))[1], expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(tangent, (x,), (one,))[1], expected, rtol=1e-6)
    np.testing.assert_allclose(jax.vjp(tangent, x)[1](one)[0], expected, rtol=1e-6)


def test_such_a_rule_in_a_loop_is_refused():
    def rule(dy, x):
        return jax.lax.scan(lambda c, _: (pb.scale_gradient(c, 3.0), None), dy, None, length=2)[0]

    x = jnp.array([1.0, 2.0])
    with pytest.raises(ForwardModeError, match="a rule stands in a `scan`"):
        jax.jvp(through(rule), (x,), (x,))
