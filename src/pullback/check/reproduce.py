"""Code to paste that shows a failure: the input, the cotangent, measured against claimed."""

from __future__ import annotations

import numpy as np

from pullback.check.subject import Array, Arrays, Subject

LIMIT = 64


def literal(a: Array) -> str:
    """Write an array as code."""
    if a.size > LIMIT:
        return f"np.random.default_rng(0).normal(size={a.shape}).astype({a.dtype.name!r})  # any such array"
    plain = a.astype(np.float64) if a.dtype.name == "bfloat16" else a
    text = np.array2string(
        plain, separator=", ", threshold=LIMIT + 1, floatmode="unique", max_line_width=10_000
    )
    return f"tf.constant({' '.join(text.split())}, dtype={a.dtype.name!r})".replace("nan", "np.nan").replace(
        "inf", "np.inf"
    )


def code(subject: Subject, inputs: Arrays, cotangents: Arrays | None, *, seed: int, note: str = "") -> str:
    """Write a few lines of Python that show the claimed gradient at a point."""
    lines = ["import numpy as np", "import tensorflow as tf", ""]
    names = [f"x{k}" for k in range(len(inputs))]
    lines += [f"{n} = {literal(a)}  # {label}" for n, a, label in zip(names, inputs, subject.names)]
    watched = [n for n, d in zip(names, subject.differentiable) if d]
    lines += [
        "with tf.GradientTape() as tape:",
        f"    tape.watch([{', '.join(watched)}])",
        f"    y = {subject.name}({', '.join(names)})",
    ]
    upstream = (
        "" if cotangents is None else f", output_gradients=[{', '.join(literal(c) for c in cotangents)}]"
    )
    lines += [f"print(tape.gradient(tf.nest.flatten(y), [{', '.join(watched)}]{upstream}))"]
    if note:
        lines.append(f"# {note}")
    lines.append(f"# seed {seed}")
    return "\n".join(lines)
