"""Rules in array-API names: one per form of the contract."""

import numpy as np

import pullback as pb

X = np.array([0.7, -1.3, 2.1])
M = np.array([[0.7, -1.3, 2.1], [-0.4, 0.9, -2.6]])
S = np.array([[2.0, 0.3, -0.1], [0.2, 1.5, 0.4], [0.1, -0.3, 1.8]])


@pb.custom_gradient
@pb.example(X)
@pb.example(M)
def log1pexp(x):
    """A residual that the second order must see."""
    xp = pb.namespace(x)
    e = xp.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return xp.log(1 + e), grad


@pb.custom_gradient
@pb.example(M, np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]]))
def cross_entropy(logits, labels):
    """A residual of both arguments."""
    xp = pb.namespace(logits, labels)
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    total = xp.sum(xp.exp(shifted), axis=-1, keepdims=True)

    def grad(dy):
        wide = xp.expand_dims(dy, axis=-1)
        weight = xp.sum(labels, axis=-1, keepdims=True)
        return wide * (weight * xp.exp(shifted) / total - labels), -wide * (shifted - xp.log(total))

    return -xp.sum(labels * (shifted - xp.log(total)), axis=-1), grad


@pb.custom_gradient
@pb.example(M, S)
def normalised_matmul(a, b):
    """Two inputs, and the output among the residuals."""
    xp = pb.namespace(a)
    product = xp.matmul(a, b)
    length = xp.sqrt(xp.sum(product * product, axis=-1, keepdims=True))
    y = product / length

    def grad(dy):
        dproduct = (dy - y * xp.sum(y * dy, axis=-1, keepdims=True)) / length
        return xp.matmul(dproduct, xp.matrix_transpose(b)), xp.matmul(xp.matrix_transpose(a), dproduct)

    return y, grad


@pb.custom_gradient
@pb.example(M, S[:, 0])
@pb.example(x=M, bias=S[:, 0])
def affine(x, bias, scale=2.0):
    """Broadcasting, a default, and arguments by keyword."""

    def grad(dy):
        return dy * scale, pb.unbroadcast(dy, like=bias)

    return x * scale + bias, grad


@pb.custom_gradient
@pb.example(M, 0)
@pb.example(M, axis=-1)
def logsumexp(x, axis=None):
    """A static, which needs no slot."""
    xp = pb.namespace(x)
    largest = pb.stop_gradient(xp.max(x, axis=axis, keepdims=True))
    total = xp.sum(xp.exp(x - largest), axis=axis, keepdims=True)

    def grad(dy):
        return xp.expand_dims(dy, axis=axis) * xp.exp(x - largest) / total

    return xp.squeeze(largest + xp.log(total), axis=axis), grad


@pb.custom_gradient
@pb.example(X)
def sine_and_cosine(x):
    """Two outputs."""
    xp = pb.namespace(x)
    s, c = xp.sin(x), xp.cos(x)

    def grad(ds, dc):
        return ds * c - dc * s

    return s, c, grad


@pb.custom_gradient
@pb.example({"w": S, "b": X}, M)
def dense(parameters, x):
    """A structure in, and by name out."""
    xp = pb.namespace(x)
    w, b = parameters["w"], parameters["b"]

    def grad(dy):
        return {
            "parameters": {"w": xp.matmul(xp.matrix_transpose(x), dy), "b": pb.unbroadcast(dy, like=b)},
            "x": xp.matmul(dy, xp.matrix_transpose(w)),
        }

    return xp.matmul(x, w) + b, grad


@pb.custom_gradient
@pb.example(M)
def moments(x):
    """A structure out: one cotangent of that structure."""
    xp = pb.namespace(x)

    def grad(d):
        return xp.expand_dims(d["mean"], axis=-1) / 3 + 2 * x * xp.expand_dims(d["square"], axis=-1)

    return {"mean": xp.sum(x, axis=-1) / 3, "square": xp.sum(x * x, axis=-1)}, grad


@pb.custom_gradient
@pb.example(M, np.array([2, 0, 2]))
def pick(x, index):
    """An input of whole numbers, which gets no gradient."""
    xp = pb.namespace(x)
    one = xp.astype(xp.expand_dims(index, axis=-1) == xp.arange(x.shape[-1]), x.dtype)

    def grad(dy):
        return xp.matmul(dy, one)

    return xp.take(x, index, axis=-1), grad


@pb.custom_gradient
@pb.example(S, X)
def solve(a, b):
    """An implicit function: its own result is the residual."""
    xp = pb.namespace(a)
    y = xp.linalg.solve(a, xp.expand_dims(b, axis=-1))[..., 0]

    def grad(dy):
        db = xp.linalg.solve(xp.matrix_transpose(a), xp.expand_dims(dy, axis=-1))[..., 0]
        return -xp.expand_dims(db, axis=-1) * xp.expand_dims(y, axis=-2), db

    return y, grad


@pb.custom_gradient
@pb.example(X)
def cube(x):
    """A second order that is given."""

    def grad(dy):
        def gradgrad(ddx):
            return ddx * dy * 6 * x

        return dy * 3 * x * x, gradgrad

    return x * x * x, grad


@pb.custom_gradient(order=1)
@pb.example(X)
def square_once(x):
    """First derivatives only."""

    def grad(dy):
        return 2 * x * dy

    return x * x, grad


@pb.custom_gradient
@pb.example(X, M[:, :1])
def product(a, b):
    """A pushforward that is given, and broadcasting in both directions."""

    def grad(dy):
        return pb.unbroadcast(dy * b, like=a), pb.unbroadcast(dy * a, like=b)

    return a * b, grad


@product.pushforward
def _product_pushforward(da, db, a, b):
    return da * b + a * db


@pb.custom_gradient(differs="the gradient is kept small")
@pb.example(X)
def calm(x):
    """A pullback that is not linear: no forward mode."""
    xp = pb.namespace(x)

    def grad(dy):
        return xp.tanh(dy)

    return x * 1.0, grad


@pb.custom_gradient(like=lambda x: x * x * x / 3)
@pb.example(X)
def step_with_the_slope_of_a_cube(x):
    """The derivative of another function."""
    xp = pb.namespace(x)

    def grad(dy):
        return dy * x * x

    return xp.floor(x), grad


@pb.custom_gradient(differs="the mask gets none")
@pb.example(X, np.array([1.0, 0.0, 1.0]))
def masked(x, mask):
    """None for an argument, on purpose."""

    def grad(dy):
        return dy * mask, None

    return x * mask, grad
