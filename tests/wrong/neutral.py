"""Rules that name no framework: each is checked on every host."""

import numpy as np

import pullback as pb

WRONG, RIGHT = {}, {}


def normal(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def positive(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.3, 2.0, size=shape).astype("float32")


def complexes(*shape):
    return (normal(*shape) + 1j * normal(*shape, seed=1)).astype("complex64")


def wrong(cause, *at):
    def enter(body):
        WRONG[body.__name__] = (pb.custom_gradient(body), at, cause)
        return body

    return enter


def right(*at, **options):
    def enter(body):
        RIGHT[body.__name__] = (pb.custom_gradient(**options)(body), at)
        return body

    return enter


@wrong("upstream-ignored", normal(5))
def sine_without_upstream(x):
    xp = pb.namespace(x)
    return xp.sin(x), lambda dy: xp.cos(x)


@wrong("upstream-nonlinear", normal(5))
def exponential_upstream_squared(x):
    xp = pb.namespace(x)
    y = xp.exp(x)
    return y, lambda dy: dy * dy * y


@wrong("upstream-additive", normal(4, 3))
def weight_decay_in_gradient(x):
    xp = pb.namespace(x)
    return xp.tanh(x), lambda dy: dy * (1 - xp.tanh(x) ** 2) + 0.01 * x


@wrong("upstream-replaced", normal(4, 3))
def square_with_mean_upstream(x):
    xp = pb.namespace(x)
    return x * x, lambda dy: xp.mean(dy) * 2 * x


@wrong("sign", normal(5))
def cosine_without_minus(x):
    xp = pb.namespace(x)
    return xp.cos(x), lambda dy: dy * xp.sin(x)


@wrong("constant-factor", normal(5))
def square_without_two(x):
    return x * x, lambda dy: dy * x


@wrong("missing-factor", normal(5))
def cube_without_square(x):
    return x * x * x, lambda dy: 3 * dy * x


@wrong("evaluated-at-output", normal(5))
def tanh_of_the_input(x):
    xp = pb.namespace(x)
    return xp.tanh(x), lambda dy: dy * (1 - x * x)


@wrong("wrong-region", normal(6))
def relu_turned_round(x):
    xp = pb.namespace(x)
    return xp.where(x > 0, x, 0 * x), lambda dy: xp.where(x < 0, dy, 0 * dy)


@wrong("inputs-swapped", normal(5), positive(5, seed=1))
def product_swapped(x, y):
    return x * y, lambda dy: (dy * x, dy * y)


@wrong("broadcast-not-reduced", normal(4, 3), normal(3, seed=2))
def bias_not_summed(x, b):
    return x + b, lambda dy: (dy, dy)


@wrong("broadcast-not-reduced", normal(4, 3), normal(3, seed=2))
def bias_of_the_first_row(x, b):
    return x + b, lambda dy: (dy, dy[0])


@wrong("missing-term", normal(3, 4))
def softmax_without_its_sum(x):
    xp = pb.namespace(x)
    e = xp.exp(x)
    y = e / xp.sum(e, axis=-1, keepdims=True)
    return y, lambda dy: dy * y


@wrong("conjugate-missing", complexes(4))
def complex_square_without_conjugate(z):
    return z * z, lambda dy: dy * 2 * z


@wrong("output-cotangent", normal(5))
def second_output_forgotten(x):
    xp = pb.namespace(x)
    return xp.sin(x), xp.exp(x), lambda a, b: a * xp.cos(x)


@wrong("constant-factor", {"scale": positive(1), "shift": normal(1)}, normal(5))
def scale_in_a_dict(p, x):
    xp = pb.namespace(x)

    def grad(dy):
        total = xp.sum(dy * x)
        return {"scale": xp.reshape(total, (1,)) / 2, "shift": xp.reshape(xp.sum(dy), (1,))}, dy * p["scale"]

    return x * p["scale"] + p["shift"], grad


@right(normal(5))
def softplus(x):
    xp = pb.namespace(x)
    return xp.log(1 + xp.exp(x)), lambda dy: dy / (1 + xp.exp(-x))


@right(normal(4, 3), normal(3, seed=2))
def bias(x, b):
    xp = pb.namespace(x)
    return x + b, lambda dy: (dy, xp.sum(dy, axis=0))


@right(normal(4, 3), normal(3, 2, seed=3))
def product(a, b):
    xp = pb.namespace(a)
    t = xp.matrix_transpose
    return xp.matmul(a, b), lambda dy: (xp.matmul(dy, t(b)), xp.matmul(t(a), dy))


@right(complexes(4))
def complex_square(z):
    xp = pb.namespace(z)
    return z * z, lambda dy: dy * 2 * xp.conj(z)


@right(normal(5), positive(5))
def masked(x, mask):
    return x * mask, lambda dy: (dy * mask, None)


@right(normal(5))
def two_outputs(x):
    return x * x, -x, lambda a, b: 2 * x * a - b


@right(normal(5), order=1)
def first_order_only(x):
    xp = pb.namespace(x)
    return xp.sin(x), lambda dy: dy * xp.cos(x)


@right(normal(5), differs="straight-through")
def rounded(x):
    xp = pb.namespace(x)
    return xp.round(x), lambda dy: dy


@right(np.float32([0.2, -0.3, 0.1]))
def fixed_point_of_thirty_steps(a):
    xp = pb.namespace(a)
    z = 0 * a
    for _ in range(30):
        z = xp.cos(a * z)  # it converges where |a| is small

    def grad(dy):
        slope = xp.sin(a * z)
        return -dy * slope * z / (1 + a * slope)

    return z, grad
