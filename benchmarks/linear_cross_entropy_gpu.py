"""Linear + cross-entropy in bfloat16 on a GPU: time and memory against the compiled plain loss, error of dw.

Time: the median of interleaved steps. Memory: the peak of a step beyond its inputs and its gradients. Error:
of the rows of dw that belong to 512 of the labels, against float64.

    python benchmarks/linear_cross_entropy_gpu.py [torch|jax]
"""

from __future__ import annotations

import statistics
import sys
import time

from side_by_side import judge

from pullback.ops.linear.cross_entropy import linear_cross_entropy

N = 8192
SHAPES = {"Gemma-2": (2304, 256_000), "Llama-3": (4096, 128_256)}
MIB = 2**20


def medians(arms, steps=15):
    """Run the arms in turn; give the median of each in milliseconds."""
    taken = {name: [] for name in arms}
    for _ in range(steps):
        for name, arm in arms.items():
            start = time.perf_counter()
            arm()
            taken[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(times) for name, times in taken.items()}


def of_torch():
    import torch
    import torch.nn.functional as F

    results = []
    for model, (width, classes) in SHAPES.items():
        torch.manual_seed(0)
        x = torch.randn(N, width, device="cuda", dtype=torch.bfloat16).requires_grad_()
        w = (torch.randn(classes, width, device="cuda") / width**0.5).bfloat16().requires_grad_()
        labels = torch.randint(0, classes, (N,), device="cuda")
        compiled = torch.compile(lambda x, w, labels=labels: F.cross_entropy((x @ w.T).float(), labels))
        losses = {
            "compiled": compiled,
            "ours": lambda x, w, labels=labels: linear_cross_entropy(x, w, labels),
        }

        def floor(x=x, w=w):
            with torch.no_grad():
                for rows in x.split(2048):
                    z = rows @ w.T
                    z @ w, z.T @ rows
            torch.cuda.synchronize()

        def step(loss, x=x, w=w):
            gradients = torch.autograd.grad(loss(x, w), [x, w])
            torch.cuda.synchronize()
            return gradients

        rows = labels.unique()[:512]
        exact = exact_rows(x.detach(), w.detach(), labels, rows)
        errors, needed = {}, {}
        for name, loss in losses.items():
            step(loss)
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            dx, dw = step(loss)
            kept = (dx.numel() + dw.numel()) * 2
            needed[name] = (torch.cuda.max_memory_allocated() - before - kept) / MIB
            errors[name] = float((dw[rows].double() - exact).norm() / exact.norm())
            del dx, dw
        arms = {name: lambda loss=loss: step(loss) for name, loss in losses.items()}
        times = medians({"three products": floor, **arms})
        for name, took in times.items():
            print(
                f"torch {model} {name:<14} {took:7.1f} ms {needed.get(name, 0):8.0f} MiB   "
                f"error of dw {errors.get(name, 0):.2e}",
                flush=True,
            )
        results += [
            (f"torch {model}: time / compiled", times["ours"] / times["compiled"], 1.05),
            (f"torch {model}: memory / compiled", needed["ours"] / needed["compiled"], 0.3),
            (f"torch {model}: error / compiled", errors["ours"] / errors["compiled"], 2.0),
        ]
    return results


def exact_rows(x, w, labels, rows):
    """Compute some rows of dw in float64."""
    dw = 0
    for xs, ys in zip(x.split(512), labels.split(512)):
        xs = xs.double()
        lse = (xs @ w.double().T).logsumexp(1, keepdim=True)
        p = (xs @ w[rows].double().T - lse).exp() - (ys[:, None] == rows[None]).double()
        dw = dw + p.T @ xs
    return dw / len(x)


def of_jax():
    import jax
    import jax.numpy as jnp

    def plain(x, w, labels):
        z = jnp.einsum("nd,vd->nv", x, w, preferred_element_type=jnp.float32)
        return jnp.mean(jax.nn.logsumexp(z, axis=1) - jnp.take_along_axis(z, labels[:, None], 1)[:, 0])

    def floor(x, w, labels):
        def turn(i, state):
            dx, dw = state
            rows = jax.lax.dynamic_slice_in_dim(x, i * 2048, 2048)
            z = rows @ w.T
            return jax.lax.dynamic_update_slice_in_dim(dx, z @ w, i * 2048, 0), dw + z.T @ rows

        return jax.lax.fori_loop(0, len(x) // 2048, turn, (x, w))

    ways = {
        "three products": floor,
        "plain": jax.value_and_grad(plain, (0, 1)),
        "ours": jax.value_and_grad(linear_cross_entropy, (0, 1)),
    }
    results = []
    for model, (width, classes) in SHAPES.items():
        keys = jax.random.split(jax.random.key(0), 3)
        x = jax.random.normal(keys[0], (N, width), jnp.bfloat16)
        w = (jax.random.normal(keys[1], (classes, width)) / width**0.5).astype(jnp.bfloat16)
        labels = jax.random.randint(keys[2], (N,), 0, classes)
        arms, needed = {}, {}
        for name, way in ways.items():
            program = jax.jit(way).lower(x, w, labels).compile()
            needed[name] = program.memory_analysis().temp_size_in_bytes / MIB
            arms[name] = lambda program=program, x=x, w=w, labels=labels: jax.block_until_ready(
                program(x, w, labels)
            )
            arms[name]()
        times = medians(arms, 9)
        for name, took in times.items():
            print(f"jax {model} {name:<14} {took:7.1f} ms {needed[name]:8.0f} MiB", flush=True)
        results += [
            (f"jax {model}: time / plain", times["ours"] / times["plain"], 1.05),
            (f"jax {model}: memory / plain", needed["ours"] / needed["plain"], 0.3),
        ]
    return results


if __name__ == "__main__":
    judge({"torch": of_torch, "jax": of_jax}[sys.argv[1] if len(sys.argv) > 1 else "torch"]())
