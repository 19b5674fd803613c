"""Wrong rules for which a name lies near that would mislead; each is checked on every host."""

import numpy as np

import pullback as pb

NAMES = {}


def normal(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def called(said, *at, never=()):
    """Enter a wrong rule, what its sentence must hold, and the causes that it must not get."""

    def enter(body):
        NAMES[body.__name__] = (pb.custom_gradient(body), at, said, frozenset(never))
        return body

    return enter


@called("x < 0", normal(6), never=["precision-lost"])
def slope_where_there_is_none(x):
    xp = pb.namespace(x)
    return xp.maximum(x, 0 * x), lambda dy: xp.where(x > 0, dy, 0.01 * dy)


@called("is 32 (the length of axis 0 of x) times", normal(32, 5))
def mean_without_its_count(x):
    xp = pb.namespace(x)
    return xp.mean(x * x, axis=0), lambda dy: 2 * x * dy


@called("is 1/32 (the length of axis 0 of x) times", normal(32, 5))
def sum_with_a_count(x):
    xp = pb.namespace(x)
    return xp.sum(x * x, axis=0), lambda dy: 2 * x * dy / 32


@called("that of `x` is wrong in all 5 entries", normal(5), never=["residual-constant"])
def second_order_said_wrong(x):
    xp = pb.namespace(x)

    def grad(dy):
        return dy * xp.cos(x), lambda ddx: -ddx * dy * xp.cos(x)

    return xp.sin(x), grad


@called("of the second order: the gradient of `x` is 1/2 times", normal(5), never=["residual-constant"])
def second_order_said_by_half(x):
    xp = pb.namespace(x)

    def grad(dy):
        return dy * xp.cos(x), lambda ddx: -ddx * dy * xp.sin(x) / 2

    return xp.sin(x), grad


@called("passed through", normal(4, 5) * 3, normal(5, seed=1), never=["missing-term"])
def rounded_by_a_scale(x, s):
    xp = pb.namespace(x)
    return xp.round(x * s) / s, lambda dy: (dy, xp.sum(0 * dy, axis=0))


@called(
    "that of `w` is wrong in all 3 entries", normal(4, 3), normal(3, seed=2), never=["broadcast-not-reduced"]
)
def factor_dropped_before_the_sum(x, w):
    xp = pb.namespace(x)
    return x * w, lambda dy: (dy * w, xp.sum(dy, axis=0))


@called("that of `z` is wrong in all 4 entries", (normal(4) + 1j * normal(4, seed=1)).astype("complex64"))
def complex_beside_real_outputs(z):
    xp = pb.namespace(z)
    return z * z, xp.real(z * xp.conj(z)), lambda a, b: 3 * a * xp.conj(z) * z + 0 * z


@called("3 of 12 entries", normal(3, 4))
def three_entries_without_a_pattern(x):
    xp = pb.namespace(x)
    weight = np.zeros((3, 4), "float32")
    weight[2, 0], weight[2, 1], weight[2, 3] = 0.1, 2.0, -0.7
    return xp.sin(x), lambda dy: dy * xp.cos(x) + xp.astype(xp.asarray(weight), x.dtype) * dy * xp.exp(x)


@called(
    "that of `alpha` is wrong",
    np.maximum(normal(6, 4), 0),
    np.float32(0.7),
    never=["wrong-region"],
)
def bound_that_takes_every_cotangent(x, alpha):
    xp = pb.namespace(x)
    inside = xp.astype((x > 0) & (x < alpha), x.dtype)
    clipped = xp.where(x < alpha, xp.maximum(x, 0 * x), alpha + 0 * x)
    return clipped, lambda dy: (dy * inside, xp.sum(dy))


@called("is 2 times", np.float32([0.5, 2, 3]), never=["missing-term"])
def root_by_newton(a):
    x = 0 * a + 1
    for _ in range(30):
        x = (x + a / x) / 2
    return x, lambda dy: dy / x


@called("not the derivative", 1 + np.abs(normal(5, dtype="float64")), never=["precision-lost"])
def damped_where_it_is_singular(x):
    xp = pb.namespace(x)
    return xp.log(xp.abs(x)), lambda dy: dy * x / (x * x + 1e-7)


@called("not the derivative", 1 + np.abs(normal(1, dtype="float64")), never=["constant-factor"])
def off_by_little_everywhere(x):
    xp = pb.namespace(x)
    return xp.exp(x), lambda dy: dy * xp.exp(x) * (1 + 9e-5 * xp.sin(3 * x) / (1 + x * x))
