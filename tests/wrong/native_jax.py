"""Rules written with JAX's own decorators: code that never heard of pullback."""

import equinox as eqx
import jax
import jax.numpy as jnp
from table import Table

zoo = Table(jnp.asarray)
X, Y = zoo.normal(5), zoo.positive(5, seed=1)
M, B = zoo.normal(4, 3), zoo.normal(3, seed=2)
Z = zoo.complexes(4)


def vjp(function, backward, keep=None, **options):
    """Make a custom_vjp that keeps its inputs, or what `keep` gives."""
    rule = jax.custom_vjp(function, **options)
    rule.defvjp(lambda *args: (function(*args), args if keep is None else keep(*args)), backward)
    return rule


def jvp(function, forward):
    rule = jax.custom_jvp(function)
    rule.defjvp(lambda primals, tangents: (function(*primals), forward(*primals, *tangents)))
    return rule


def unary(function, backward):
    return vjp(function, lambda kept, d: (backward(kept[0], d),))


# ── wrong ────────────────────────────────────────────────────────────────────────────────────────────────

zoo.wrong("upstream ignored", unary(jnp.sin, lambda x, d: jnp.cos(x)), X, cause="upstream-ignored")
zoo.wrong("upstream squared", unary(jnp.exp, lambda x, d: d * d * jnp.exp(x)), X, cause="upstream-nonlinear")
zoo.wrong(
    "weight decay in the gradient",
    unary(jnp.tanh, lambda x, d: d * (1 - jnp.tanh(x) ** 2) + 0.01 * x),
    X,
    cause="upstream-additive",
)
zoo.wrong(
    "upstream averaged", unary(jnp.square, lambda x, d: jnp.mean(d) * 2 * x), X, cause="upstream-replaced"
)
zoo.wrong("sign of the cosine", unary(jnp.cos, lambda x, d: d * jnp.sin(x)), X, cause="sign")
zoo.wrong("two forgotten", unary(jnp.square, lambda x, d: d * x), X, cause="constant-factor")
zoo.wrong("square forgotten", unary(lambda x: x**3, lambda x, d: d * 3 * x), X, cause="missing-factor")
zoo.wrong("tanh of the input", unary(jnp.tanh, lambda x, d: d * (1 - x * x)), X, cause="evaluated-at-output")
zoo.wrong(
    "branch turned round",
    unary(lambda x: jnp.maximum(x, 0), lambda x, d: d * (x < 0)),
    X,
    cause="wrong-region",
)
zoo.wrong("straight through", unary(jnp.exp, lambda x, d: d), X, cause=("straight-through", "missing-factor"))
zoo.wrong(
    "product swapped",
    vjp(jnp.multiply, lambda kept, d: (d * kept[0], d * kept[1])),
    X,
    Y,
    cause="inputs-swapped",
)
zoo.wrong(
    "bias not summed", vjp(lambda x, b: x + b, lambda kept, d: (d, d)), M, B, cause="broadcast-not-reduced"
)
zoo.wrong(
    "bias of the first row",
    vjp(lambda x, b: x + b, lambda kept, d: (d, d[0])),
    M,
    B,
    cause="broadcast-not-reduced",
)
zoo.wrong(
    "matrix transposed",
    vjp(jnp.matmul, lambda kept, d: ((d @ kept[1].T).T, kept[0].T @ d)),
    M,
    zoo.normal(3, 2, seed=3),
    cause="transposed",
)
zoo.wrong(
    "softmax without its sum",
    unary(lambda x: jax.nn.softmax(x, -1), lambda x, d: d * jax.nn.softmax(x, -1)),
    M,
    cause="missing-term",
)
zoo.wrong(
    "conjugate too many",
    unary(lambda z: z * z, lambda z, d: d * 2 * jnp.conj(z)),
    Z,
    cause="conjugate-missing",
)
zoo.wrong(
    "residual cut off",
    vjp(jnp.sin, lambda c, d: (d * c,), lambda x: jax.lax.stop_gradient(jnp.cos(x))),
    X,
    cause="residual-constant",
)
zoo.wrong(
    "second output forgotten",
    unary(lambda x: (jnp.sin(x), jnp.exp(x)), lambda x, d: d[0] * jnp.cos(x)),
    X,
    cause="output-cotangent",
)
zoo.wrong(
    "repeated index overwritten",
    vjp(lambda x, i: x[i], lambda kept, d: (jnp.zeros_like(kept[0]).at[kept[1]].set(d), None)),
    X,
    jnp.array([0, 2, 2, 4]),
    cause="repeated-index",
)
zoo.wrong("tangent without its two", jvp(jnp.square, lambda x, t: t * x), X, cause="constant-factor")
zoo.wrong("tangent with a sign", jvp(jnp.cos, lambda x, t: t * jnp.sin(x)), X, cause="sign")
zoo.wrong(
    "custom_gradient without its factor",
    jax.custom_gradient(lambda x: (x**3, lambda d: d * 3 * x)),
    X,
    cause="missing-factor",
)
_half = unary(jnp.square, lambda x, d: d * x)
zoo.wrong(
    "inside jit and scan",
    jax.jit(lambda x: jax.lax.scan(lambda c, _: (c + _half(x), None), jnp.zeros_like(x), None, 3)[0]),
    X,
    cause="constant-factor",
)
zoo.wrong(
    "in a tree of parameters",
    vjp(
        lambda p, x: x * p["scale"] + p["shift"],
        lambda kept, d: ({"scale": jnp.sum(d * kept[1]) / 2, "shift": jnp.sum(d)}, d * kept[0]["scale"]),
    ),
    {"scale": jnp.array(1.5), "shift": jnp.array(-0.5)},
    X,
    cause="constant-factor",
)


class Scale(eqx.Module):
    weight: jax.Array
    factor: float = 1.0

    def __call__(self, x):
        rule = vjp(lambda x, w: x * w, lambda kept, d: (d * kept[1], self.factor * d * kept[0]))
        return rule(x, self.weight)


zoo.wrong("the weight of a module", Scale(zoo.normal(5, seed=4), 2.0), X, cause="constant-factor")

_filtered = eqx.filter_custom_vjp(lambda x: x**2)
_filtered.def_fwd(lambda perturbed, x: (x**2, x))
_filtered.def_bwd(lambda kept, d, perturbed, x: d * kept)
zoo.wrong("filtered by Equinox", _filtered, X, cause="constant-factor")
_pushed = eqx.filter_custom_jvp(lambda x: x**2)
_pushed.def_jvp(lambda primals, tangents: (primals[0] ** 2, tangents[0] * primals[0]))
zoo.wrong("pushed by Equinox", _pushed, X, cause="constant-factor")

# ── right ────────────────────────────────────────────────────────────────────────────────────────────────

zoo.right("softplus", unary(lambda x: jnp.logaddexp(x, 0), lambda x, d: d * jax.nn.sigmoid(x)), X)
zoo.right("relu", unary(lambda x: jnp.maximum(x, 0), lambda x, d: d * (x > 0)), X)
zoo.right("bias", vjp(lambda x, b: x + b, lambda kept, d: (d, d.sum(0))), M, B)
zoo.right("matmul", vjp(jnp.matmul, lambda k, d: (d @ k[1].T, k[0].T @ d)), M, zoo.normal(3, 2, seed=3))
zoo.right("complex square", unary(lambda z: z * z, lambda z, d: d * 2 * z), Z)
zoo.right("modulus", unary(lambda z: jnp.real(z * jnp.conj(z)), lambda z, d: d * 2 * jnp.conj(z)), Z)
zoo.right(
    "gather",
    vjp(lambda x, i: x[i], lambda kept, d: (jnp.zeros_like(kept[0]).at[kept[1]].add(d), None)),
    X,
    jnp.array([0, 2, 2, 4]),
)
zoo.right("no gradient for a mask", vjp(lambda x, m: x * m, lambda k, d: (d * k[1], None)), X, Y)
zoo.right("tangent rule", jvp(jnp.sin, lambda x, t: t * jnp.cos(x)), X)
zoo.right("two outputs", unary(lambda x: (x * x, -x), lambda x, d: 2 * x * d[0] - d[1]), X)
zoo.right(
    "a static power",
    vjp(lambda x, n: x**n, lambda n, kept, d: (d * n * kept[0] ** (n - 1),), nondiff_argnums=(1,)),
    X,
    3,
)
zoo.right("inside jit", jax.jit(lambda x: jnp.sum(unary(jnp.exp, lambda x, d: d * jnp.exp(x))(x))), X)
zoo.right("a module", Scale(zoo.normal(5, seed=4)), X)
zoo.right("a plain function of a tree", lambda p, x: x * p["w"] + p["b"][0], {"w": Y, "b": (X,)}, X)
zoo.right("a builtin", jax.nn.silu, X)
