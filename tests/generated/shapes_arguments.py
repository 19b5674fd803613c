"""Shapes of arguments: indices, masks, nested ones, by name, broadcast, without entries; several outputs."""

import numpy as np
from kit import kind

import pullback as pb


@kind("index", "repeats overwritten")
def index(kit):
    n = kit.length() + 2
    rows = kit.rng.integers(0, n, n + 1).astype("int32")

    def body(x, rows):
        xp = pb.namespace(x)

        def grad(dy):
            hot = xp.astype(rows[:, None] == xp.arange(n, dtype=rows.dtype), x.dtype)
            if kit.wrong == "repeats overwritten":  # the last one of equal rows wins
                later = xp.flip(xp.cumulative_sum(xp.flip(hot, axis=0), axis=0), axis=0)
                hot = hot * xp.astype(later == 1, x.dtype)
            return kit.end(kit.pull(xp, x, xp.matmul(xp.matrix_transpose(hot), kit.start(dy)))), None

        return xp.take(kit.value(xp, x), rows, axis=0), grad

    return body, (kit.draw(n, kit.length()), rows), {}


@kind("mask", "mask left out", "mask turned round")
def mask(kit):
    shape = (kit.length(), kit.length() + 1)
    chosen = kit.rng.random(shape) < 0.5

    def body(x, chosen):
        xp = pb.namespace(x)

        def grad(dy):
            dx, zero = kit.pull(xp, x, kit.start(dy)), 0 * x
            if kit.wrong != "mask left out":
                dx = xp.where(chosen, *((zero, dx) if kit.wrong == "mask turned round" else (dx, zero)))
            return kit.end(dx), None

        return xp.where(chosen, kit.value(xp, x), 0 * x - 1), grad

    return body, (kit.draw(*shape), chosen), {}


@kind("nested", "swapped")
def nested(kit):
    n = kit.length()

    def body(x, p):
        xp = pb.namespace(x)
        w, b, c = p["w"], p["rest"][0], p["rest"][1]["c"]

        def grad(dy):
            d = kit.pull(xp, w * x + b, kit.start(dy) * c)
            dc = xp.sum(kit.start(dy) * kit.value(xp, w * x + b), axis=0)
            by = (d, d * x) if kit.wrong == "swapped" else (d * x, d)
            return kit.end(d * w), {"w": xp.sum(by[0], axis=0), "rest": [xp.sum(by[1], axis=0), {"c": dc}]}

        return c * kit.value(xp, w * x + b), grad

    p = {"w": kit.draw(n), "rest": [kit.draw(n), {"c": kit.draw(n)}]}
    return body, (kit.draw(kit.length(), n), p), {}


@kind("by name", "swapped")
def by_name(kit):
    n = kit.length()

    def body(x, *, scale, power=2):
        xp = pb.namespace(x)
        y = kit.value(xp, x)

        def grad(dy):
            dy = kit.start(dy)
            by = y**power if kit.wrong != "swapped" else x
            dx = kit.pull(xp, x, power * y ** (power - 1) * dy * scale)
            return kit.end(dx), dy * by

        return scale * y**power, grad

    return body, (kit.draw(n),), {"scale": kit.draw(n), "power": int(kit.rng.integers(2, 4))}


@kind("broadcast", "other axis", "one entry", "mean for sum")
def broadcast(kit):
    n = kit.length()

    def body(a, b, c):
        xp = pb.namespace(a)

        def grad(dy):
            d = kit.pull(xp, a * b + c, kit.start(dy))
            reduce = xp.mean if kit.wrong == "mean for sum" else xp.sum
            if kit.wrong == "other axis":
                da = xp.matrix_transpose(reduce(d * b, axis=0, keepdims=True))
            else:
                da = reduce(d * b, axis=1, keepdims=True)
            dc = d[0, 0] if kit.wrong == "one entry" else xp.sum(d)
            return kit.end(da), xp.sum(d * a, axis=0, keepdims=True), dc

        return kit.value(xp, a * b + c), grad

    return body, (kit.draw(n, 1), kit.draw(1, n), kit.draw()), {}


@kind("reduction", "mean for sum", "not divided")
def reduction(kit):
    shape = tuple(kit.length() for _ in range(3))
    axis = (0, 1, -1, -2, -3, None, (0, -1), (-2, -1))[kit.rng.integers(8)]
    keep, mean = bool(kit.rng.integers(2)), bool(kit.rng.integers(2))
    axes = range(3) if axis is None else [a % 3 for a in (axis if isinstance(axis, tuple) else (axis,))]

    def body(x):
        xp = pb.namespace(x)
        y = (xp.mean if mean else xp.sum)(kit.value(xp, x), axis=axis, keepdims=keep)

        def grad(dy):
            one = tuple(1 if i in axes else x.shape[i] for i in range(3))
            count = int(np.prod([x.shape[i] for i in axes]))
            d = xp.reshape(kit.start(dy), one) + 0 * x
            divide = mean != (kit.wrong in ("mean for sum", "not divided"))
            return kit.end(kit.pull(xp, x, d / count if divide else d))

        return y, grad

    return body, (kit.draw(*shape),), {}


@kind("three outputs", "one forgotten", "swapped")
def three_outputs(kit):
    def body(x):
        xp = pb.namespace(x)
        y = kit.value(xp, x)

        def grad(dy, ds, dm):
            if kit.wrong == "swapped":
                dy, dm = dm + 0 * x, xp.sum(dy)
            d = kit.start(dy) + (0 if kit.wrong == "one forgotten" else ds[..., None])
            return kit.end(kit.pull(xp, x, d)) + 2 * x * dm

        return y, xp.sum(y, axis=-1), xp.sum(x * x), grad

    return body, (kit.draw(kit.length(), kit.length()),), {}


@kind("kept aside", "one of two left out")
def kept_aside(kit):
    """Have an input that is an output, too, and one that counts for nothing."""
    n = kit.length()

    def body(x, w, unused):
        xp = pb.namespace(x)

        def grad(dy, dw):
            dy = kit.start(dy)
            by_w = dy * kit.value(xp, x) + (0 if kit.wrong == "one of two left out" else dw)
            return kit.end(kit.pull(xp, x, dy * w)), by_w, None

        return w * kit.value(xp, x), w + 0, grad

    return body, (kit.draw(n), kit.draw(n), kit.draw(n)), {}


@kind("without entries")
def without_entries(kit):
    def body(x, b):
        xp = pb.namespace(x)

        def grad(dy):
            d = kit.pull(xp, x + b, kit.start(dy))
            return kit.end(d), xp.sum(d, axis=0)

        return kit.value(xp, x + b), grad

    n = kit.length()
    return body, (kit.draw(0, n), kit.draw(n)), {}
