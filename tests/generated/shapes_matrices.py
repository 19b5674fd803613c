"""Shapes of matrices and vectors: inverses, solutions, distances, lengths and angles."""

import numpy as np
from kit import WHOLE, kind

import pullback as pb


@kind("inverse", "not transposed", anywhere=WHOLE)
def inverse(kit):
    n = kit.length()

    def body(a):
        xp = pb.namespace(a)
        y = xp.linalg.inv(a)
        t = y if kit.wrong == "not transposed" else xp.matrix_transpose(y)
        return y, lambda dy: kit.end(-xp.matmul(t, xp.matmul(kit.start(dy), t)))

    return body, (kit.draw(n, n) + (3 * np.eye(n)).astype(kit.dtype),), {}


@kind("solution", "not transposed", "right side only", anywhere=WHOLE)
def solution(kit):
    n = kit.length()

    def body(a, b):
        xp = pb.namespace(a)
        t = xp.matrix_transpose
        x = xp.linalg.solve(a, b)

        def grad(dy):
            db = xp.linalg.solve(a if kit.wrong == "not transposed" else t(a), kit.start(dy))
            return kit.end(0 * a if kit.wrong == "right side only" else -xp.matmul(db, t(x))), db

        return x, grad

    return body, (kit.draw(n, n) + (3 * np.eye(n)).astype(kit.dtype), kit.draw(n, 2)), {}


@kind("log of a determinant", "not inverted", anywhere=WHOLE)
def log_determinant(kit):
    n = kit.length()
    definite = bool(kit.rng.integers(2))

    def body(a):
        xp = pb.namespace(a)
        if definite:
            factor = xp.linalg.cholesky(a)
            y = 2 * xp.sum(xp.log(xp.linalg.diagonal(factor)))
        else:
            y = xp.linalg.slogdet(a)[1]

        def grad(dy):
            return kit.end(
                kit.start(dy) * (a if kit.wrong == "not inverted" else xp.matrix_transpose(xp.linalg.inv(a)))
            )

        return y, grad

    a = kit.draw(n, n)
    return body, ((a @ a.T if definite else a) + (2 * np.eye(n)).astype(kit.dtype),), {}


@kind("distance", "not divided", anywhere=WHOLE)
def distance(kit):
    safe = bool(kit.rng.integers(2))

    def body(x, y):
        xp = pb.namespace(x)
        r = x[:, None, :] - y[None, :, :]
        s = xp.sqrt(xp.sum(r * r, axis=-1))

        def grad(dy):
            under = xp.where(s == 0, 0 * s + 1, s) if safe else s
            d = kit.start(dy) if kit.wrong == "not divided" else kit.start(dy) / under
            return kit.end(xp.sum(d[..., None] * r, axis=1)), -xp.sum(d[..., None] * r, axis=0)

        return s, grad

    n = kit.length()
    return body, (kit.draw(kit.length(), n), kit.draw(kit.length(), n)), {}


@kind("unit vectors", "not projected", anywhere=WHOLE)
def unit_vectors(kit):
    def body(x):
        xp = pb.namespace(x)
        s = xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True))
        y = x / s

        def grad(dy):
            d = kit.start(dy)
            along = 0 if kit.wrong == "not projected" else y * xp.sum(d * y, axis=-1, keepdims=True)
            return kit.end((d - along) / s)

        return y, grad

    return body, (kit.draw(kit.length(), kit.length()),), {}


@kind("cosine of an angle", "not projected", anywhere=WHOLE)
def cosine(kit):
    def body(a, b):
        xp = pb.namespace(a)
        la, lb = (xp.sqrt(xp.sum(v * v, axis=-1, keepdims=True)) for v in (a, b))
        c = xp.sum(a * b, axis=-1, keepdims=True) / (la * lb)

        def grad(dy):
            d = kit.start(dy)[..., None]
            part = 0 if kit.wrong == "not projected" else c
            return kit.end(d * (b / lb - part * a / la) / la), d * (a / la - part * b / lb) / lb

        return c[..., 0], grad

    shape = (kit.length(), kit.length())
    return body, (kit.draw(*shape), kit.draw(*shape)), {}


@kind("convolution", "not turned round", anywhere=WHOLE)
def convolution(kit):
    n, k = kit.length() + 3, 3

    def body(x, w):
        xp = pb.namespace(x)
        m = x.shape[-1] - k + 1
        y = sum(w[j] * x[:, j : j + m] for j in range(k))

        def grad(dy):
            d = kit.start(dy)
            zero = 0 * d[:, :1]
            pieces = []
            for j in range(k):
                before, after = (k - 1 - j, j) if kit.wrong == "not turned round" else (j, k - 1 - j)
                pieces.append(xp.concat([zero] * before + [w[j] * d] + [zero] * after, axis=-1))
            dw = xp.stack([xp.sum(d * x[:, j : j + m]) for j in range(k)])
            return kit.end(sum(pieces)), dw

        return y, grad

    return body, (kit.draw(kit.length(), n), kit.draw(k)), {}
