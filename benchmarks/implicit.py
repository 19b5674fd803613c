"""A deep equilibrium layer, z = tanh(W·z + x): its implicit gradient beside that of the unrolled iteration.

Three numbers for each framework, each with its bar: what is kept from forward to backward after many
iterations over what is kept after few (flat: 1.05), the time of a gradient over the unrolled one (0.5), and
its largest error, in float32 and relative to the largest entry, over that of the unrolled one (2). The
truth is the same in float64, its linear systems written out. Beside them, without a bar: the memory of the
unrolled one, the time of its iteration forward, which no gradient can go below, and jaxopt's time, memory and
error, if it is installed. Each framework is measured in processes of its own.

    python benchmarks/implicit.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import importlib.util
import os

import numpy as np
from side_by_side import fastest_of_processes, floors, judge, tell

SIZE, BATCH = 256, 256
FEW, MANY = 20, 200  # iterations
FORWARD = "forward"  # the iteration by itself


def problem():
    """Give W, whose largest singular value is 0.9, and x."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(SIZE, SIZE))
    weights *= 0.9 / np.linalg.svd(weights, compute_uv=False)[0]
    return weights.astype(np.float32), rng.normal(size=(SIZE, BATCH)).astype(np.float32)


def truth():
    """Give the gradient of mean(z²) to W: with s = 1 − z², (1 − Wᵀ·diag(s))·u = z̄ and W̄ = (s·u)·zᵀ."""
    weights, x = (a.astype(np.float64) for a in problem())
    z = np.zeros_like(x)
    for _ in range(1000):
        z = np.tanh(weights @ z + x)
    slope = 1 - z * z
    matrices = np.eye(SIZE) - weights.T * slope.T[:, None, :]
    u = np.linalg.solve(matrices, (2 * z / z.size).T[..., None])[..., 0].T
    return (slope * u) @ z.T


def errors(gradients):
    """Give the largest error of each way's gradient to W, relative to the largest entry."""
    known = truth()
    return {name: float(np.max(np.abs(g - known)) / np.max(np.abs(known))) for name, g in gradients.items()}


# ── PyTorch ──────────────────────────────────────────────────────────────────────────────────────────────


def measure_torch(rounds):
    import torch

    import pullback as pb

    w, x = (torch.tensor(a, requires_grad=True) for a in problem())

    def step(z, w, x):
        return torch.tanh(w @ z + x)

    def unrolled(w, x, iterations):
        z = torch.zeros_like(x)
        for _ in range(iterations):
            z = step(z, w, x)
        return z

    implicit = pb.implicit.fixed_point(step, unrolled, tolerance=1.0)  # a few iterations are not enough

    def kept(way, iterations):
        seen = {}
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: seen.setdefault(t.untyped_storage().data_ptr(), t) is None or t, lambda t: t
        )
        with hooks:
            way(w, x, iterations)
        return sum(t.untyped_storage().nbytes() for t in seen.values())

    def gradient(way):
        return torch.autograd.grad(way(w, x, MANY).square().mean(), [w, x])

    ways = {"unrolled": unrolled, "implicit": implicit}
    arms = {name: (lambda way=way: gradient(way)) for name, way in ways.items()}
    forward = {FORWARD: torch.no_grad()(lambda: unrolled(w, x, MANY))}
    return {
        "memory": {name: [kept(way, FEW), kept(way, MANY)] for name, way in ways.items()},
        "time": floors(arms | forward, calls=1, rounds=rounds),
        "error": errors({name: arm()[0].numpy() for name, arm in arms.items()}),
    }


# ── JAX ──────────────────────────────────────────────────────────────────────────────────────────────────


def measure_jax(rounds):
    import jax
    import jax.numpy as jnp

    import pullback as pb

    w, x = map(jnp.asarray, problem())

    def step(z, w, x):
        return jnp.tanh(w @ z + x)

    def of(iterations):
        def unrolled(init, w, x):
            return jax.lax.fori_loop(0, iterations, lambda _, z: step(z, w, x), jnp.zeros_like(x))

        ways = {"unrolled": unrolled, "implicit": pb.implicit.fixed_point(step, unrolled, tolerance=1.0)}
        forward = jax.jit(lambda w, x: unrolled(None, w, x))
        if importlib.util.find_spec("jaxopt") is not None:
            from jaxopt.implicit_diff import custom_fixed_point

            ways["jaxopt"] = custom_fixed_point(step)(unrolled)
        return forward, {
            name: jax.jit(jax.grad(lambda w, x, way=way: jnp.mean(way(None, w, x) ** 2), (0, 1)))
            for name, way in ways.items()
        }

    def kept(name, iterations):
        return of(iterations)[1][name].lower(w, x).compile().memory_analysis().temp_size_in_bytes

    iteration, ways = of(MANY)
    forward = {FORWARD: lambda: jax.block_until_ready(iteration(w, x))}
    arms = {name: (lambda way=way: jax.block_until_ready(way(w, x))) for name, way in ways.items()}
    return {
        "memory": {name: [kept(name, FEW), kept(name, MANY)] for name in ways},
        "time": floors(arms | forward, calls=1, rounds=rounds),
        "error": errors({name: np.asarray(arm()[0]) for name, arm in arms.items()}),
    }


# ── TensorFlow ───────────────────────────────────────────────────────────────────────────────────────────


def measure_tensorflow(rounds):
    import tensorflow as tf

    import pullback as pb

    w, x = map(tf.constant, problem())

    def step(z, w, x):
        return tf.tanh(w @ z + x)

    def unrolled(w, x, iterations):
        z = tf.zeros_like(x)
        for _ in range(iterations):
            z = step(z, w, x)
        return z

    implicit = pb.implicit.fixed_point(step, unrolled, tolerance=1.0)

    def gradient(way, w, x):
        with tf.GradientTape() as tape:
            tape.watch([w, x])
            y = tf.reduce_mean(way(w, x, MANY) ** 2)
        return tape.gradient(y, [w, x])

    def compiled(way):
        return tf.function(lambda w, x: gradient(way, w, x))

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def kept(way, iterations):
        """Tell how far the memory of an eager tape grows, beyond that of the same call without one."""
        way(w, x, 3)
        before = resident()
        with tf.GradientTape() as tape:
            tape.watch([w, x])
            y = way(w, x, iterations)
        grown = resident() - before
        del tape, y
        return max(grown, w.shape.num_elements() * 4)  # a page more or less

    ways = {"implicit": implicit, "unrolled": unrolled}
    # before graphs are run, whose memory stays
    memory = {name: [kept(way, FEW), kept(way, MANY)] for name, way in ways.items()}
    graphs = {name: compiled(way) for name, way in ways.items()}
    arms = {name: (lambda graph=graph: graph(w, x)[0].numpy()) for name, graph in graphs.items()}
    iteration = tf.function(lambda w, x: unrolled(w, x, MANY))
    forward = {FORWARD: lambda: iteration(w, x).numpy()}
    return {
        "memory": memory,
        "time": floors(arms | forward, calls=1, rounds=rounds),
        "error": errors({name: arm() for name, arm in arms.items()}),
    }


MEASURES = {"tensorflow": measure_tensorflow, "jax": measure_jax, "torch": measure_torch}


def main() -> None:
    """Measure every framework, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=3, help="of each framework; the fastest counts")
    parser.add_argument("--only", choices=list(MEASURES))
    parser.add_argument("--inside", choices=list(MEASURES))
    options = parser.parse_args()
    if options.inside:
        tell(MEASURES[options.inside](options.rounds))
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    results = []
    for name in [options.only] if options.only else MEASURES:
        found = fastest_of_processes(
            options.processes, __file__, "--inside", name, "--rounds", str(options.rounds)
        )
        times, kept, error = found["time"], found["memory"], found["error"]
        forward = times.pop(FORWARD)
        print(f"{name} forward: {forward / 1e3:.1f} ms, {forward / times['unrolled']:.3f} of the unrolled")
        for way, time in times.items():
            few, many = (size / 2**20 for size in kept[way])
            print(
                f"{name} {way}: {time / 1e3:.1f} ms, error {error[way]:.1e}, "
                f"{few:.1f} MiB kept after {FEW} iterations and {many:.1f} after {MANY}"
            )
        if name == "jax" and "jaxopt" not in times:
            print("jaxopt is not installed: not compared")
        results += [
            (f"{name}: kept after many iterations / few", kept["implicit"][1] / kept["implicit"][0], 1.05),
            (f"{name}: time / unrolled", times["implicit"] / times["unrolled"], 0.5),
            (f"{name}: error / unrolled", error["implicit"] / error["unrolled"], 2.0),
        ]
    judge(results)


if __name__ == "__main__":
    main()
