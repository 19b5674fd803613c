"""Shapes of domains: functions that exist for some arguments only, or have points without a derivative."""

import numpy as np
from kit import WHOLE, kind

import pullback as pb


@kind("logarithm", "base forgotten", anywhere=WHOLE)
def logarithm(kit):
    def body(x):
        xp = pb.namespace(x)

        def grad(dy):
            return kit.end(kit.start(dy) / (x if kit.wrong == "base forgotten" else x * float(np.log(2.0))))

        return xp.log(x) / float(np.log(2.0)), grad

    return body, (kit.positive(kit.length(), kit.length()),), {}


@kind("power", "exponent left out", "exponent not lowered", anywhere=WHOLE)
def power(kit):
    p = float(kit.rng.choice([0.5, 1.7, -1.0, 2.5, -0.3]))

    def body(x):
        def grad(dy):
            d = kit.start(dy) * x ** (p if kit.wrong == "exponent not lowered" else p - 1)
            return kit.end(d if kit.wrong == "exponent left out" else p * d)

        return x**p, grad

    return body, (kit.positive(kit.length() + 1),), {}


@kind("arc sine", "root left out", anywhere=WHOLE)
def arc_sine(kit):
    def body(x):
        xp = pb.namespace(x)
        return xp.asin(x), lambda dy: kit.end(
            kit.start(dy) / ((1 - x * x) if kit.wrong == "root left out" else xp.sqrt(1 - x * x))
        )

    return body, (kit.draw(kit.length() + 1, scale=0.6),), {}


@kind("angle", "swapped", anywhere=WHOLE)
def angle(kit):
    def body(y, x):
        xp = pb.namespace(y)
        s = x * x + y * y

        def grad(dy):
            d = kit.start(dy) / s
            return (kit.end(d * y), -d * x) if kit.wrong == "swapped" else (kit.end(d * x), -d * y)

        return xp.atan2(y, x), grad

    n = kit.length()
    return body, (kit.draw(n), kit.draw(n)), {}


@kind("divergence", "one of two left out", anywhere=WHOLE)
def divergence(kit):
    shape = (kit.length(), kit.length() + 1)

    def rows():
        e = np.exp(kit.draw(*shape).astype("float64"))
        return (e / e.sum(-1, keepdims=True)).astype(kit.dtype)

    def body(p, q):
        xp = pb.namespace(p)

        def grad(dy):
            d = kit.start(dy)[:, None]
            more = 0 if kit.wrong == "one of two left out" else 1
            return kit.end(d * (xp.log(p) - xp.log(q) + more)), -d * p / q

        return xp.sum(p * (xp.log(p) - xp.log(q)), axis=-1), grad

    return body, (rows(), rows()), {}


@kind("inside of an interval", "width left out", anywhere=WHOLE)
def interval(kit):
    def body(x, low, high):
        xp = pb.namespace(x)
        w = high - low
        y = (x - low) / w
        inside = (y > 0) & (y < 1)

        def grad(dy):
            d = xp.where(inside, kit.start(dy), 0 * x)
            d = d if kit.wrong == "width left out" else d / w
            return kit.end(d), d * (y - 1), -d * y

        return xp.where(y < 0, 0 * y, xp.where(y > 1, 0 * y + 1, y)), grad

    n = kit.length() + 1
    low = kit.draw(n)
    return body, (kit.draw(n), low, low + kit.positive(n)), {}


@kind("fraction", "zero")
def fraction(kit):
    def body(x):
        xp = pb.namespace(x)
        y = kit.value(xp, x)

        def grad(dy):
            return kit.end(kit.pull(xp, x, 0 * dy if kit.wrong == "zero" else kit.start(dy)))

        return y - xp.floor(y), grad

    return body, (kit.draw(kit.length(), kit.length()),), {}


@kind("in order", "not put back", anywhere=WHOLE)
def in_order(kit):
    def body(x):
        xp = pb.namespace(x)
        order = xp.argsort(x, axis=-1)

        def grad(dy):
            d = kit.start(dy)
            return kit.end(
                d
                if kit.wrong == "not put back"
                else xp.take_along_axis(d, xp.argsort(order, axis=-1), axis=-1)
            )

        return xp.take_along_axis(x, order, axis=-1), grad

    return body, (kit.draw(kit.length(), kit.length() + 1),), {}


@kind("largest", "to all", "to the smallest")
def largest_entry(kit):
    def body(x):
        xp = pb.namespace(x)
        y = kit.value(xp, x)
        pick = xp.argmin if kit.wrong == "to the smallest" else xp.argmax

        def grad(dy):
            at = pick(y, axis=-1)[..., None]
            hot = xp.astype(xp.arange(x.shape[-1], dtype=at.dtype) == at, x.dtype)
            d = kit.start(dy)[..., None]
            return kit.end(kit.pull(xp, x, d + 0 * y if kit.wrong == "to all" else d * hot))

        return xp.max(y, axis=-1), grad

    return body, (kit.draw(kit.length(), kit.length() + 1),), {}


@kind("between two entries", "slope of the neighbour", anywhere=WHOLE)
def between(kit):
    n = kit.length() + 3

    def body(x, table):
        xp = pb.namespace(x)
        i = xp.where(x < 0, 0 * x, xp.where(x > n - 2, 0 * x + (n - 2), xp.floor(x)))
        w = x - i
        i = xp.astype(i, xp.int32)
        a, b = xp.take(table, i, axis=0), xp.take(table, i + 1, axis=0)

        def grad(dy):
            d = kit.start(dy)
            hot = [xp.astype((i + k)[:, None] == xp.arange(n, dtype=i.dtype), x.dtype) for k in (0, 1)]
            dt = xp.sum((d * (1 - w))[:, None] * hot[0] + (d * w)[:, None] * hot[1], axis=0)
            if kit.wrong == "slope of the neighbour":
                return kit.end(d * (a - table[0])), dt
            return kit.end(d * (b - a)), dt

        return (1 - w) * a + w * b, grad

    m = kit.length()
    x = kit.rng.integers(0, n - 1, m) + kit.rng.uniform(0.1, 0.9, m)
    return body, (x.astype(kit.dtype), kit.draw(n)), {}


@kind("cross entropy", "label left out", "not a mean", anywhere=WHOLE)
def cross_entropy(kit):
    m, n = kit.length(), kit.length() + 1
    labels = kit.rng.integers(0, n, m).astype("int32")

    def body(x, labels):
        xp = pb.namespace(x)
        z = x - xp.max(x, axis=-1, keepdims=True)
        log = z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True))
        hot = xp.astype(labels[:, None] == xp.arange(n, dtype=labels.dtype), x.dtype)

        def grad(dy):
            d = xp.exp(log) if kit.wrong == "label left out" else xp.exp(log) - hot
            return kit.end(kit.start(dy) * (d if kit.wrong == "not a mean" else d / x.shape[0])), None

        return -xp.sum(hot * log) / x.shape[0], grad

    return body, (kit.draw(m, n, scale=float(kit.rng.choice([1.0, 10.0]))), labels), {}


@kind("far away")
def far_away(kit):
    """Look at a small neighbourhood of a large number."""
    base = float(kit.rng.choice([100.0, 1000.0]))

    def body(x):
        xp = pb.namespace(x)
        return kit.value(xp, x - base), lambda dy: kit.end(kit.pull(xp, x - base, kit.start(dy)))

    return body, ((base + kit.draw(kit.length()).astype("float64")).astype(kit.dtype),), {}


@kind("single number")
def single(kit):
    def body(x, b):
        xp = pb.namespace(x)

        def grad(dy):
            d = kit.pull(xp, x + b, kit.start(dy))
            return kit.end(d), d

        return kit.value(xp, x + b), grad

    return body, (kit.draw(), kit.draw()), {}


@kind("sum that is always one", "one of two left out", anywhere=())
def always_one(kit):
    def body(x):
        xp = pb.namespace(x)
        e = xp.exp(x - xp.max(x))
        y = e / xp.sum(e)

        def grad(dy):
            return dy * y * (1 if kit.wrong == "one of two left out" else 1 - xp.sum(y))

        return xp.sum(y), grad

    return body, (kit.draw(kit.length() + 2),), {}


@kind("flat", "straight through", anywhere=())
def flat(kit):
    def body(x):
        xp = pb.namespace(x)
        y = kit.value(xp, x)
        return xp.floor(3 * y), lambda dy: kit.pull(xp, x, dy) if kit.wrong else 0 * x

    return body, (kit.draw(kit.length(), kit.length()),), {}
