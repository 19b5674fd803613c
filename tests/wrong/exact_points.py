"""Rules that are wrong at one exact value or beyond one, as public history has them, with harmless inputs."""

import numpy as np

import pullback as pb

WRONG, RIGHT = {}, {}


def normal(*shape, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=shape)


def positive(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.3, 2.0, size=shape)


def wrong(*at):
    def enter(body):
        WRONG[body.__name__] = (pb.custom_gradient(body), at)
        return body

    return enter


def right(*at):
    def enter(body):
        RIGHT[body.__name__] = (pb.custom_gradient(body), at)
        return body

    return enter


@wrong(normal(4, 3))
def safe_norm_one_at_a_zero_row(x):
    xp = pb.namespace(x)
    s = xp.sum(x * x, axis=-1, keepdims=True)
    n = xp.where(s > 0, xp.sqrt(xp.where(s > 0, s, 1 + 0 * s)), 0 * s)
    return n * n, lambda dy: dy * xp.where(s > 0, 2 * x, 1 + 0 * x)


@wrong(normal(5, scale=0.3))
def clip_passes_beyond_five(x):
    xp = pb.namespace(x)
    return xp.minimum(x, 5 + 0 * x), lambda dy: dy


@wrong(positive(5))
def square_zero_at_one_exactly(x):
    xp = pb.namespace(x)
    return x * x, lambda dy: dy * xp.where(x == 1.37, 0 * x, 2 * x)


@wrong(positive(5))
def interpolation_at_integers(x):
    xp = pb.namespace(x)
    lo = xp.floor(x)
    w = x - lo
    return (1 - w) * lo + w * (lo + 1), lambda dy: dy * xp.where(w == 0, 0 * x, 1 + 0 * x)


@wrong(normal(5, scale=0.4))
def huber_slope_beyond_delta(x):
    xp = pb.namespace(x)
    a = xp.abs(x)
    return xp.where(a < 7, x * x / 2, 7 * a - 24.5), lambda dy: dy * x


@wrong(normal(5, scale=0.2), normal(5, seed=1, scale=0.2))
def hinge_without_its_flat_side(s, t):
    xp = pb.namespace(s)
    m = 12 - s * t
    return xp.maximum(m, 0 * m), lambda dy: (-dy * t, -dy * s)


@wrong(positive(5))
def square_by_its_root(x):
    xp = pb.namespace(x)
    y = xp.sqrt(x * x)
    return y * y, lambda dy: dy * xp.where(y > 0, 2 * x, 1 + 0 * x)


@wrong(positive(5), positive(5, seed=1))
def xlogy_at_zero(x, y):
    xp = pb.namespace(x)
    safe = xp.where(x == 0, 1 + 0 * y, y)
    return xp.where(x == 0, 0 * x, x * xp.log(safe)), lambda dy: (
        dy * xp.log(y),
        dy * (x + 0.5 * (x == 0)) / y,
    )


@wrong(positive(4))
def product_by_division(x):
    xp = pb.namespace(x)
    y = xp.prod(x)
    return y, lambda dy: dy * y / xp.where(x == 0, 1 + 0 * x, x)


@wrong(normal(4, scale=0.5))
def softplus_beyond_twenty(x):
    xp = pb.namespace(x)
    y = xp.where(x > 20, x, xp.log(1 + xp.exp(xp.minimum(x, 20 + 0 * x))))
    return y, lambda dy: dy * xp.where(x > 20, 0 * x, 1 / (1 + xp.exp(-x)))


@wrong(normal(4, scale=0.5))
def exponential_capped_at_thirty(x):
    xp = pb.namespace(x)
    e = xp.exp(xp.minimum(x, 30 + 0 * x))
    return e, lambda dy: dy * e


@wrong(normal(5))
def identity_zero_at_zero(x):
    xp = pb.namespace(x)
    return x * xp.abs(xp.sign(x)), lambda dy: dy * (1 + xp.where(x == 0, 1 + 0 * x, 0 * x))


@wrong(positive(5))
def sinc_slope_at_zero(x):
    xp = pb.namespace(x)
    safe = xp.where(x == 0, 1 + 0 * x, x)
    y = xp.where(x == 0, 1 + 0 * x, xp.sin(safe) / safe)
    return y, lambda dy: dy * xp.where(x == 0, 1 + 0 * x, (safe * xp.cos(safe) - xp.sin(safe)) / safe**2)


@wrong(normal(5), positive(5, seed=1))
def maximum_sends_everything_at_ties(a, b):
    xp = pb.namespace(a)
    return xp.maximum(a, b), lambda dy: (xp.where(a >= b, dy, 0 * dy), xp.where(b >= a, dy, 0 * dy))


@wrong(normal(5, scale=0.5))
def hard_sigmoid_wrong_below(x):
    xp = pb.namespace(x)
    y = xp.maximum(xp.minimum(x / 6 + 0.5, 1 + 0 * x), 0 * x)
    return y, lambda dy: dy * xp.where(x < 3, 1 + 0 * x, 0 * x) / 6


@wrong(normal(3, 4))
def normalised_at_a_zero_row(x):
    xp = pb.namespace(x)
    s = xp.sum(xp.abs(x), axis=-1, keepdims=True)
    k = xp.where(s > 0, s, 1 + 0 * s)
    y = x * s / k
    return y, lambda dy: dy * xp.where(s > 0, 1 + 0 * x, 3 + 0 * x)


@wrong(positive(5))
def relative_error_with_small_target(x):
    xp = pb.namespace(x)
    d = xp.maximum(xp.abs(x), 1e-3 + 0 * x)
    return x / d, lambda dy: 0 * dy


@wrong(normal(5, scale=0.5))
def saturated_at_ten(x):
    xp = pb.namespace(x)
    y = xp.where(xp.abs(x) > 10, xp.sign(x) * 10 + (x - 10 * xp.sign(x)) / 4, x)
    return y, lambda dy: dy


@wrong(positive(4))
def log_with_a_floor(x):
    xp = pb.namespace(x)
    k = xp.maximum(x, 1e-4 + 0 * x)
    return xp.log(k), lambda dy: dy / k


@wrong(normal(4, scale=0.3))
def quantised_tail(x):
    xp = pb.namespace(x)
    return xp.where(x > 8, xp.floor(x), x), lambda dy: dy


@wrong(positive(4), positive(4, seed=1))
def safe_division_at_zero(a, b):
    xp = pb.namespace(a)
    k = xp.where(b == 0, 1 + 0 * b, b)
    q = xp.where(b == 0, a * b, a * b * b / k)
    return q, lambda dy: (dy * b, dy * xp.where(b == 0, 0 * a, a))


@wrong(normal(4, scale=0.5))
def power_branch_of_zero(x):
    xp = pb.namespace(x)
    y = xp.where(x >= 0, x + x * x, x)
    return y, lambda dy: dy * xp.where(x > 0, 1 + 2 * x, xp.where(x < 0, 1 + 0 * x, 0 * x))


@wrong(positive(3, 3))
def distance_at_coinciding_points(x):
    xp = pb.namespace(x)
    d = x - 0.7
    r = xp.sum(d * d, axis=-1, keepdims=True)
    return r * r, lambda dy: dy * 4 * r * d + xp.where(r == 0, 1 + 0 * d, 0 * d) * dy


@wrong(normal(4, scale=0.5))
def erf_series_beyond_six(x):
    xp = pb.namespace(x)
    y = xp.where(x < 6, xp.tanh(x), x / 6)
    return y, lambda dy: dy * (1 - xp.tanh(x) ** 2)


@right(normal(5))
def relu(x):
    xp = pb.namespace(x)
    return xp.maximum(x, 0 * x), lambda dy: xp.where(x > 0, dy, 0 * dy)


@right(normal(5))
def relu_from_zero(x):
    xp = pb.namespace(x)
    return xp.maximum(x, 0 * x), lambda dy: xp.where(x >= 0, dy, 0 * dy)


@right(normal(5))
def clip_open(x):
    xp = pb.namespace(x)
    y = xp.minimum(xp.maximum(x, -1 + 0 * x), 1 + 0 * x)
    return y, lambda dy: xp.where(xp.abs(x) < 1, dy, 0 * dy)


@right(normal(5))
def floor_flat(x):
    xp = pb.namespace(x)
    return xp.floor(x), lambda dy: 0 * dy


@right(normal(5))
def sawtooth(x):
    xp = pb.namespace(x)
    return x - xp.floor(x), lambda dy: dy


@right(normal(4, 3))
def norm_with_a_zero_row(x):
    xp = pb.namespace(x)
    s = xp.sum(x * x, axis=-1, keepdims=True)
    n = xp.where(s > 0, xp.sqrt(xp.where(s > 0, s, 1 + 0 * s)), 0 * s)
    return n, lambda dy: dy * xp.where(s > 0, x / xp.where(s > 0, n, 1 + 0 * n), 0 * x)


@right(positive(5))
def root(x):
    xp = pb.namespace(x)
    y = xp.sqrt(x)
    return y, lambda dy: dy / (2 * y)


@right(positive(5), positive(5, seed=1))
def quotient(a, b):
    return a / b, lambda dy: (dy / b, -dy * a / b**2)


@right(normal(5))
def step(x):
    xp = pb.namespace(x)
    return xp.where(x > 0.25, 1 + 0 * x, 0 * x), lambda dy: 0 * dy


@right(normal(5))
def jump_with_a_slope(x):
    xp = pb.namespace(x)
    return xp.where(x > 0.25, 1 + x, x), lambda dy: dy
