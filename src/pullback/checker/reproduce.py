"""Code to paste that shows a failure: the input, the cotangent, measured against claimed."""

from __future__ import annotations

import re

import numpy as np

from pullback.dtypes import is_guest
from pullback.view.subject import Array, Arrays, Subject
from pullback.view.words import Shown, Words

LIMIT = 64


def literal(a: Array, words: Words) -> str:
    """Write an array as a tensor in the host's language."""
    if a.size > LIMIT:
        values = f"np.random.default_rng(0).normal(size={a.shape})"
        text = words.tensor.format(values=values, dtype=a.dtype.name)
        return f"{text}  # any such array"
    plain = a.astype(np.float64) if is_guest(a.dtype) else a
    written = np.array2string(
        plain, separator=", ", threshold=LIMIT + 1, floatmode="unique", max_line_width=10_000
    )
    values = re.sub(r"\b(nan|inf)\b", r"np.\1", " ".join(written.split()))
    return words.tensor.format(values=values, dtype=a.dtype.name)


def code(subject: Subject, inputs: Arrays, cotangents: Arrays | None, *, seed: int, note: str = "") -> str:
    """Write a few lines of Python that show the claimed gradient at a point."""
    words = subject.words
    names = [f"x{k}" for k in range(len(inputs))]
    dtypes = frozenset(a.dtype.name for a in inputs)
    lines = ["import numpy as np", *words.head(dtypes), ""]
    for name, array, label in zip(names, inputs, subject.names):
        text = literal(array, words)
        lines.append(f"{name} = {text}" + ("" if "#" in text else f"  # {label}"))
    count = len(names) - len(subject.parameters)
    shown = Shown(
        call=subject.written(names[:count]),
        inputs=names[:count],
        moving=[n for n, d in zip(names, subject.differentiable) if d],
        parameters=list(zip(subject.parameters, names[count:])),
        cotangents=None if cotangents is None else [literal(c, words).split("  #")[0] for c in cotangents],
        dtypes=dtypes,
    )
    lines += words.example(shown)
    if note:
        lines.append(f"# {note}")
    lines.append(f"# seed {seed}")
    return "\n".join(lines)
