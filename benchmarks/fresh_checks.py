"""What one check costs on JAX in a fresh process, where every program has still to be compiled.

Nine rules of the kinds that users write, each in a process of its own; only `pb.check` is measured. The bar:
a median of one second. Exits with 1 when it is missed. `--cpu` counts CPU time: on a busy machine.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BAR = 1.0  # seconds
RULES: dict[str, Callable[[], tuple]] = {}


def rule(make: Callable[[], tuple]) -> Callable[[], tuple]:
    """Know a function that makes a rule and its arguments."""
    RULES[make.__name__] = make
    return make


@rule
def sine_by_custom_vjp():
    import jax
    import jax.numpy as jnp

    sine = jax.custom_vjp(jnp.sin)
    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, dy: (dy * jnp.cos(x),))
    return sine, jnp.linspace(-1.0, 1.3, 5)


@rule
def layer_by_custom_vjp():
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def layer(x, w):
        return jnp.tanh(x @ w)

    def forward(x, w):
        y = layer(x, w)
        return y, (x, w, y)

    def backward(kept, dy):
        x, w, y = kept
        s = dy * (1 - y * y)
        return s @ w.T, x.T @ s

    layer.defvjp(forward, backward)
    return layer, jnp.full((3, 4), 0.3), jnp.full((4, 2), 0.2)


@rule
def softplus_by_custom_jvp():
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def softplus(x):
        return jnp.log1p(jnp.exp(x))

    softplus.defjvps(lambda tangent, y, x: tangent * jax.nn.sigmoid(x))
    return softplus, jnp.linspace(-1.0, 1.3, 5)


@rule
def square_by_jax_custom_gradient():
    import jax
    import jax.numpy as jnp

    return jax.custom_gradient(lambda x: (x * x, lambda dy: 2 * dy * x)), jnp.linspace(-1.0, 1.3, 5)


@rule
def swish():
    import jax.numpy as jnp

    import pullback as pb

    @pb.custom_gradient
    def swish(x):
        t = jnp.tanh(x / 2)
        return x * (1 + t) / 2, lambda dy: dy * ((1 + t) / 2 + x * (1 - t * t) / 4)

    return swish, jnp.linspace(-1.0, 1.3, 5)


@rule
def length_by_partials():
    import jax.numpy as jnp

    import pullback as pb

    length = pb.elementwise(jnp.hypot, lambda a, b, output: (a / output, b / output))
    return length, jnp.linspace(0.5, 1.3, 5), jnp.array(0.7)


@rule
def log_of_sum():
    import jax.numpy as jnp

    import pullback as pb

    @pb.custom_gradient
    def log_of_sum(x):
        largest = jnp.max(x, -1, keepdims=True)
        e = jnp.exp(x - largest)
        total = jnp.sum(e, -1, keepdims=True)
        return jnp.squeeze(jnp.log(total) + largest, -1), lambda dy: dy[..., None] * e / total

    return log_of_sum, jnp.linspace(-1.0, 1.3, 6).reshape(2, 3)


@rule
def straight_through():
    import jax.numpy as jnp

    import pullback as pb

    return pb.round, jnp.linspace(-1.1, 1.3, 5)


@rule
def plain_function():
    import jax.numpy as jnp

    return lambda x: jnp.sin(x) * jnp.exp(-x * x), jnp.linspace(-1.0, 1.3, 5)


def one(name: str, cpu: bool) -> None:
    """Check one rule, and print the seconds."""
    import pullback as pb

    check = pb.check  # imported before the clock runs
    function, *args = RULES[name]()
    clock = time.process_time if cpu else time.perf_counter
    start = clock()
    report = check(function, *args, seed=1)
    took = clock() - start
    if report.verdict == "wrong":
        sys.exit(str(report))
    print(took)


def main() -> int:
    """Measure every rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.cpu)
        return 0
    command = [sys.executable, "-W", "ignore", str(Path(__file__)), *["--cpu"] * options.cpu, "--one"]
    found = []
    for name in RULES:
        runs = [
            subprocess.run([*command, name], stdout=subprocess.PIPE, check=True)
            for _ in range(options.repeat)
        ]
        found.append(min(float(run.stdout) for run in runs))
        print(f"{name:<32}{found[-1]:6.2f} s", flush=True)
    median = statistics.median(found)
    print(
        f"{'ok  ' if median <= BAR else 'MISS'}  median of {len(found)} checks  {median:.2f} s   bar {BAR:g}"
    )
    return int(median > BAR)


if __name__ == "__main__":
    sys.exit(main())
