"""Shapes of functions: branches, layers, large values, complex numbers, what moves and sums entries."""

from kit import WHOLE, kind

import pullback as pb


@kind("diagonal", anywhere=("sign", "factor", "missing term", "branch"))
def diagonal(kit):
    """Have a gradient that is its own transpose, so that a rule for forward mode is the same."""

    def body(x):
        xp = pb.namespace(x)
        return kit.value(xp, x), lambda dy: kit.end(kit.pull(xp, x, dy))

    return body, (kit.draw(kit.length(), kit.length()),), {}


@kind("clip", "edges let through", "one side", "turned round")
def clip(kit):
    low, high = sorted(kit.rng.uniform(-1.2, 1.2, 2).tolist())

    def body(x):
        xp = pb.namespace(x)
        y = kit.value(xp, x)

        def grad(dy):
            inside = y < high if kit.wrong == "one side" else (y > low) & (y < high)
            if kit.wrong == "turned round":
                inside = ~inside
            dy = kit.start(dy)
            d = dy if kit.wrong == "edges let through" else xp.where(inside, dy, 0 * dy)
            return kit.end(kit.pull(xp, x, d))

        return xp.where(y > high, 0 * y + high, xp.where(y < low, 0 * y + low, y)), grad

    return body, (kit.draw(kit.length(), kit.length() + 1),), {}


@kind("huber", "linear everywhere", "square everywhere", anywhere=WHOLE)
def huber(kit):
    edge = float(kit.rng.uniform(0.4, 1.2))

    def body(a, b):
        xp = pb.namespace(a)
        r = a - b

        def grad(dy):
            d = xp.where(xp.abs(r) < edge, r, edge * xp.sign(r))
            d = edge * xp.sign(r) if kit.wrong == "linear everywhere" else d
            d = kit.start(dy) * (r if kit.wrong == "square everywhere" else d)
            return kit.end(d), -d

        return xp.where(xp.abs(r) < edge, r * r / 2, edge * (xp.abs(r) - edge / 2)), grad

    shape = (kit.length() + 2,)
    return body, (kit.draw(*shape), kit.draw(*shape)), {}


@kind("largest of two", "swapped", "all to the first")
def largest(kit):
    def body(a, b):
        xp = pb.namespace(a)
        y, z = kit.value(xp, a), 2 * b

        def grad(dy):
            dy = kit.start(dy)
            first = (y < z) if kit.wrong == "swapped" else (y > z)
            da, db = (xp.where(which, dy, 0 * dy) for which in (first, ~first))
            da = dy if kit.wrong == "all to the first" else da
            return kit.end(kit.pull(xp, a, da)), 2 * db

        return xp.maximum(y, z), grad

    shape = (kit.length(), kit.length())
    return body, (kit.draw(*shape), kit.draw(*shape)), {}


@kind("softmax", "sum left out", "other axis", anywhere=WHOLE)
def softmax(kit):
    def body(x):
        xp = pb.namespace(x)
        e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        y = e / xp.sum(e, axis=-1, keepdims=True)

        def grad(dy):
            dy = kit.start(dy)
            inner = xp.sum(dy * y, axis=-2 if kit.wrong == "other axis" else -1, keepdims=True)
            return kit.end(y * (dy if kit.wrong == "sum left out" else dy - inner))

        return y, grad

    return body, (kit.draw(kit.length(), kit.length() + 1),), {}


@kind("norm layer", "mean left out", "scale left out", anywhere=WHOLE)
def norm_layer(kit):
    n = kit.length() + 2

    def body(x, scale):
        xp = pb.namespace(x)
        c = x - xp.mean(x, axis=-1, keepdims=True)
        s = xp.sqrt(xp.mean(c * c, axis=-1, keepdims=True) + 1e-3)
        z = c / s

        def grad(dy):
            dy = kit.start(dy)
            d = dy * scale
            left = 0 if kit.wrong == "mean left out" else xp.mean(d, axis=-1, keepdims=True)
            along = 0 if kit.wrong == "scale left out" else z * xp.mean(d * z, axis=-1, keepdims=True)
            return kit.end((d - left - along) / s), xp.sum(dy * z, axis=0)

        return z * scale, grad

    return body, (kit.draw(kit.length(), n), kit.draw(n)), {}


@kind("log of sums", "not divided", anywhere=WHOLE)
def log_of_sums(kit):
    scale = float(kit.rng.choice([1.0, 30.0, 300.0]))

    def body(x):
        xp = pb.namespace(x)
        top = xp.max(x, axis=0, keepdims=True)
        e = xp.exp(x - top)
        total = xp.sum(e, axis=0, keepdims=True)

        def grad(dy):
            return kit.end(kit.start(dy)[None] * (e if kit.wrong == "not divided" else e / total))

        return xp.log(total)[0] + top[0], grad

    return body, (kit.draw(kit.length() + 1, kit.length(), scale=scale),), {}


@kind("large", "square left out", anywhere=WHOLE)
def large(kit):
    return hypotenuse(kit, float(10.0 ** kit.rng.integers(2, 5)))


@kind("small", "square left out", anywhere=WHOLE)
def small(kit):
    return hypotenuse(kit, float(10.0 ** -kit.rng.integers(3, 7)))


def hypotenuse(kit, scale):
    def body(x, b):
        xp = pb.namespace(x)
        s = xp.sqrt(x * x + b * b)

        def grad(dy):
            dy = kit.start(dy)
            return kit.end(dy * (x if kit.wrong == "square left out" else x / s)), dy * b / s

        return s, grad

    n = kit.length()
    return body, (kit.draw(n, scale=scale), kit.draw(n, scale=scale)), {}


@kind("complex", "conjugate left out", anywhere=WHOLE)
def complexes(kit):
    which = kit.rng.integers(4)

    def body(z, w):
        xp = pb.namespace(z)
        bar = (lambda a: a) if kit.wrong == "conjugate left out" else xp.conj
        if which == 0:
            return z * w, lambda dy: (kit.end(kit.start(dy) * bar(w)), kit.start(dy) * bar(z))
        if which == 1:
            y = xp.exp(z)
            return y * w, lambda dy: (kit.end(kit.start(dy) * bar(y * w)), kit.start(dy) * bar(y))
        if which == 2:
            return z * z + w, lambda dy: (kit.end(kit.start(dy) * 2 * bar(z)), kit.start(dy))
        y = 1 / (4 + z * z)
        return w * y, lambda dy: (
            kit.end(kit.start(dy) * bar(-2 * z * y * y * w)),
            kit.start(dy) * bar(y),
        )

    n = kit.length()
    dtype = "complex64" if kit.dtype == "float32" else "complex128"
    return body, tuple((kit.draw(n) + 1j * kit.draw(n)).astype(dtype) for _ in range(2)), {}


@kind("moved axes", "not moved back")
def moved(kit):
    n = kit.length()
    rolled = int(kit.rng.integers(1, n))

    def body(x):
        xp = pb.namespace(x)
        y = xp.roll(xp.matrix_transpose(kit.value(xp, x)), rolled, axis=-1)

        def grad(dy):
            back = 0 if kit.wrong == "not moved back" else -rolled
            return kit.end(kit.pull(xp, x, xp.matrix_transpose(xp.roll(kit.start(dy), back, axis=-1))))

        return y, grad

    return body, (kit.draw(n, kit.length()),), {}


@kind("running sum", "other direction")
def running_sum(kit):
    def body(x):
        xp = pb.namespace(x)

        def grad(dy):
            dy = kit.start(dy)
            if kit.wrong != "other direction":
                dy = xp.flip(dy, axis=-1)
            d = xp.cumulative_sum(dy, axis=-1)
            return kit.end(kit.pull(xp, x, d if kit.wrong == "other direction" else xp.flip(d, axis=-1)))

        return xp.cumulative_sum(kit.value(xp, x), axis=-1), grad

    return body, (kit.draw(kit.length(), kit.length() + 2),), {}


@kind("batched product", "not summed", "not transposed")
def batched(kit):
    n = kit.length()

    def body(a, b):
        xp = pb.namespace(a)
        t = xp.matrix_transpose

        def grad(dy):
            d = kit.pull(xp, xp.matmul(a, b), kit.start(dy))
            da = xp.matmul(d, b if kit.wrong == "not transposed" else t(b))
            db = xp.matmul(t(a), d)
            return kit.end(da), db[0] if kit.wrong == "not summed" else xp.sum(db, axis=0)

        return kit.value(xp, xp.matmul(a, b)), grad

    return body, (kit.draw(kit.length(), kit.length(), n), kit.draw(n, n)), {}
