"""What a custom gradient costs in JAX beside the operation itself: pullback against `jax.custom_vjp`.

Eager mode on 8 numbers, where nothing but overhead is measured; the time to trace and lower a gradient; and
one step of a small network under `jit`, where both should cost nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from side_by_side import floors, judge

import pullback as pb
from pullback import hosts

X = jnp.asarray([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])


def sine(x):
    def grad(dy):
        return dy * jnp.cos(x)

    return jnp.sin(x), grad


def product(x, y):
    def grad(dz):
        return dz * y, dz * x

    return x * y, grad


@jax.custom_vjp
def native_sine(x):
    return jnp.sin(x)


native_sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, dy: (dy * jnp.cos(x),))


@jax.custom_vjp
def native_product(x, y):
    return x * y


native_product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, dz: (dz * kept[1], dz * kept[0]))

OPERATIONS = {
    "sine": (native_sine, pb.custom_gradient(sine), [X]),
    "product": (native_product, pb.custom_gradient(product), [X, X + 1]),
}


def both(f, inputs):
    def run():
        y, pull = jax.vjp(f, *inputs)
        return pull(y)

    return run


def lowered(f, inputs):
    """Trace and lower the gradient of a chain of calls; a new function each time, as JAX keeps its traces."""

    def run():
        def loss(*xs):
            y = f(*xs)
            for _ in range(4):
                y = f(y, *xs[1:])
            return jnp.sum(y)

        return jax.jit(jax.grad(loss)).lower(*inputs)

    return run


def eager_and_traced() -> list[tuple[str, float, float]]:
    results = []
    for name, (native, ours, inputs) in OPERATIONS.items():
        ways = {"native": native, "pullback": ours}
        for stage, make, calls, rounds, bar in (
            ("eager, forward", lambda f, xs: lambda: f(*xs), 100, 20, 1.0),
            ("eager, forward and backward", both, 30, 40, 1.2),
            ("traced and lowered", lowered, 2, 12, 2.0),
        ):
            t = floors({way: make(f, inputs) for way, f in ways.items()}, calls=calls, rounds=rounds)
            print(f"{stage}, {name}: custom_vjp {t['native']:.0f} µs, pullback {t['pullback']:.0f} µs")
            results.append((f"{stage}, {name} / custom_vjp", t["pullback"] / t["native"], bar))
    return results


def network(activation):
    weights = [jax.random.normal(jax.random.key(k), (256, 256)) / 16 for k in range(8)]
    x = jax.random.normal(jax.random.key(9), (256, 256))

    @jax.jit
    def step(weights):
        def loss(weights):
            y = x
            for w in weights:
                y = activation(y @ w)
            return jnp.mean(y**2)

        return jax.value_and_grad(loss)(weights)

    return lambda: jax.block_until_ready(step(weights))


def compiled() -> list[tuple[str, float, float]]:
    native, ours, _ = OPERATIONS["sine"]
    t = floors({"native": network(native), "pullback": network(ours)}, calls=3, rounds=80)
    print(f"compiled step: custom_vjp {t['native']:.0f} µs, pullback {t['pullback']:.0f} µs")
    return [("compiled step / custom_vjp", t["pullback"] / t["native"], 1.02)]


def discovery() -> list[tuple[str, float, float]]:
    inputs = (X,)

    def find():
        host = hosts.role(type(inputs[0]))
        host.ready(inputs)

    t = floors({"find": find, "nothing": lambda: None}, calls=2000, rounds=20)
    return [("finding the host, µs", t["find"] - t["nothing"], 0.5)]


if __name__ == "__main__":
    judge(eager_and_traced() + compiled() + discovery())
