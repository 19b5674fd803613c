"""Findings as a check of a small program wrote them, with every kind of picture; and many of them."""

import json
import math
from dataclasses import replace

from test_reports import FAILURE, OPEN, RIGHT, WRONG

from pullback.report import json as report_json
from pullback.report.entry import Entry, Run

X = [[round(-2 + 0.34 * (6 * r + c), 3) for c in range(6)] for r in range(4)]
FLAT = [v for row in X for v in row]
NAMES = [f"x[{r}, {c}]" for r in range(4) for c in range(6)]
STEPS = [round(0.4 + 0.04 * k, 3) for k in range(41)]
DECADES = [10.0**k for k in range(-20, 21)]
AT = [*(-v for v in DECADES[::-1]), *DECADES]


def scatter(order=1, claimed=tuple(3 * v for v in FLAT), measured=tuple(3 * v * v for v in FLAT)):
    apart = [i for i, (c, m) in enumerate(zip(claimed, measured)) if c == "nan" or abs(c - m) > 1e-6]
    return {
        "kind": "scatter", "order": order, "oracle": "autodiff of the body", "total": len(NAMES),
        "entries": NAMES, "claimed": list(claimed), "measured": list(measured), "apart": apart,
    }  # fmt: skip


WARM = tuple(abs(v * v - v) / 38 for v in FLAT)


def heat(order=1, cells=WARM):
    return {
        "kind": "heat", "order": order, "input": "x", "shape": [4, 6], "rows": list("0123"),
        "columns": list("012345"), "cells": list(cells), "noise": 1e-6, "folded": False,
    }  # fmt: skip


def slice_of(order=1, claimed=3.6):
    return {
        "kind": "slice", "order": order, "entry": "x[1, 3]", "at": 1.2, "steps": STEPS,
        "values": [round(s**3 - 1.2**3, 6) for s in STEPS], "claimed": claimed, "measured": 4.32,
    }  # fmt: skip


def stability():
    slopes = [0.0 if v < -700 else 1.0 if v > 30 else 1 / (1 + math.exp(-v)) for v in AT]
    plain = ["nan" if v > 88 else s for v, s in zip(AT, slopes)]
    return {
        "kind": "stability", "order": 1, "input": "x", "dtype": "float32", "at": AT, "claimed": slopes,
        "autodiff": plain,
    }  # fmt: skip


CODE = "@jax.custom_vjp\ndef cube(x):\n    return x**3\n\n\ndef backward(x, dy):\n    return (3 * x * dy,)"
PATCH = (
    "--- a/train.py\n+++ b/train.py\n@@ -10 +10 @@\n-    return (3 * x * dy,)\n+    return (3 * x**2 * dy,)"
)
FULL = replace(FAILURE, claimed=3.6, measured=4.32, patch=PATCH, smallest="x = [1.2]")
CUBE = replace(
    WRONG, findings=(FULL,), code=CODE, docstring="Raise to the third power.",
    pictures=(scatter(), heat(), slice_of()),
)  # fmt: skip
SOFTPLUS = replace(
    RIGHT, code="def softplus(x): ...", pictures=(
        scatter(claimed=FLAT, measured=FLAT), heat(cells=[0.0] * 24), slice_of(claimed=4.32), stability(),
    ),
)  # fmt: skip
SECOND = replace(
    FAILURE, probe="second_order", cause="residual-constant", sentence="the second derivative is zero"
)
SQUARE = replace(
    WRONG, name="square", findings=(SECOND,), pictures=(scatter(2), heat(2), slice_of(2)),
)  # fmt: skip


def document(count=4):
    """Give findings of so many rules: in turn wrong, right, undecided, and wrong in the second order."""
    kinds = (CUBE, SOFTPLUS, replace(OPEN, name="noisy"), SQUARE)
    entries = []
    for i in range(count):
        report = kinds[i % 4]
        named = replace(report, name=report.name if i < 4 else f"{report.name}_{i}")
        entries.append(Entry(named, "train.py", "/p/train.py", 10 + i, "float32[4,6]", 3))
    return json.loads(report_json.dumps(Run(7, ("train.py",), entries, [], [])))
