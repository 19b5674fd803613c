"""A scan of 1024 steps on JAX: time and memory of its gradient, by schedule, beside the binomial optimum.

Time: interleaved rounds in one process, the floor of each arm. Memory: what the compiler says it needs beside
arguments and results. The curve is drawn as docs/images/checkpoint.svg. The line is the binomial optimum:
with so many states no schedule runs fewer steps, and a gradient costs three. It counts steps, and no time for
writing states down: on a processor that is what a plain scan spends most on, so a schedule can be below.

    python benchmarks/checkpoint.py [rounds] [memory]      with `memory`, nothing is timed or drawn
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from side_by_side import floors, judge

import pullback as pb
from pullback.recompute import schedule

STEPS, SHAPE = 1024, (64, 256)
SLOTS = (43, 96, 256)
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "checkpoint.svg"


def step(c, w):
    h = jnp.tanh(c * w)
    return 0.9 * c + 0.1 * jax.nn.silu(h) * jax.nn.gelu(c), None


def program(loop):
    """Compile the gradient of a loop."""

    def loss(c, w):
        return jnp.sum(loop(lambda c, _: step(c, w), c) ** 2)

    c, w = jnp.full(SHAPE, 0.5), jnp.full(SHAPE, 1.1)
    compiled = jax.jit(jax.grad(loss, (0, 1))).lower(c, w).compile()
    return compiled, lambda: jax.block_until_ready(compiled(c, w))


def arms():
    found = {
        "plain": lambda f, c: jax.lax.scan(f, c, None, STEPS)[0],
        "√T": lambda f, c: pb.checkpoint_scan(f, c, length=STEPS)[0],
    }
    for slots in SLOTS:
        scan = functools.partial(pb.checkpoint_scan, length=STEPS, slots=slots)
        found[f"{slots} slots"] = lambda f, c, scan=scan: scan(f, c)[0]
    return found


def draw(points: dict[str, tuple[float, float]], line: list[tuple[float, float]]) -> str:
    """Draw time over memory, both relative to plain; memory on a logarithmic axis."""
    import math

    def at(memory: float, time: float) -> tuple[float, float]:
        return 70 + 420 * (math.log10(memory) + 3) / 3, 260 - 110 * min(time, 2.1)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 320" font-size="12">',
        "<title>Time and memory of the gradient of a scan, by schedule</title>",
        '<rect width="560" height="320" fill="#fff"/><path d="M70 30V260H490" fill="none" stroke="#444"/>',
        '<text x="280" y="305" text-anchor="middle">memory / plain</text>',
        '<text x="20" y="145" transform="rotate(-90 20 145)" text-anchor="middle">time / plain</text>',
    ]
    for power in (-3, -2, -1, 0):
        x, _ = at(10**power, 0)
        parts.append(f'<text x="{x:.0f}" y="278" text-anchor="middle">{10**power:g}</text>')
    for time in (0.5, 1.0, 1.5, 2.0):
        _, y = at(1, time)
        parts.append(f'<path d="M66 {y:.0f}H490" stroke="#ddd"/>')
        parts.append(f'<text x="60" y="{y + 4:.0f}" text-anchor="end">{time}</text>')
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
    parts.append(f'<polyline points="{path}" fill="none" stroke="#999" stroke-dasharray="4 3"/>')
    x, y = at(*line[len(line) // 8])
    parts.append(
        f'<text x="{x:.1f}" y="{y - 8:.1f}" fill="#666">the fewest steps, by binomial schedules</text>'
    )
    labels: list[tuple[float, float]] = []
    for name, point in points.items():
        x, y = at(*point)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1565c0"/>')
        while any(abs(x - a) < 60 and abs(y - b) < 13 for a, b in labels):
            y -= 1  # above the label that stands there
        labels.append((x, y))
        parts.append(f'<text x="{x + 7:.1f}" y="{y - 6:.1f}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    rounds = next((int(word) for word in sys.argv[1:] if word.isdigit()), 5)
    runs, needed = {}, {}
    for name, loop in arms().items():
        compiled, runs[name] = program(loop)
        needed[name] = compiled.memory_analysis().temp_size_in_bytes
        print(
            f"{name:<10} {needed[name] / 2**20:8.2f} MiB   {needed[name] / needed['plain']:.4f} of plain",
            flush=True,
        )
    results = [("√T: memory / plain", needed["√T"] / needed["plain"], 0.02)]
    if "memory" not in sys.argv[1:]:
        times = floors(runs, calls=1, rounds=rounds)
        results.append(("√T: time / plain", times["√T"] / times["plain"], 1.35))
        state = 4 * SHAPE[0] * SHAPE[1]
        line = [
            (
                (slots + 2) * state / needed["plain"],
                1 + schedule.runs(schedule.cut(STEPS, slots)) / (3 * STEPS),
            )
            for slots in range(12, STEPS, 12)
        ]
        points = {name: (needed[name] / needed["plain"], times[name] / times["plain"]) for name in runs}
        PICTURE.write_text(draw(points, line), encoding="utf-8")
    judge(results)


if __name__ == "__main__":
    main()
