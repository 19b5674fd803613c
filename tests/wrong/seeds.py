"""A verdict does not depend on the seed: every rule of the zoo at twenty seeds, and those that waver.

No rule is both right and wrong, and 99 of a hundred have one verdict.

    python tests/wrong/seeds.py [HOST] [--first 0] [--last 20] [--only NAME]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import neutral
import numpy as np
import test_neutral
from zoo import discover

from pullback.checker import check

QUICK = {"xla": False, "export": False}
ONE_VERDICT = 0.99


def zeros(xp):
    """List functions whose derivative is zero up to rounding, which no rule is behind."""
    x = np.random.default_rng(0).normal(size=7)
    functions = {
        "sum of softmax": lambda x: (xp.exp(x) / xp.exp(x).sum()).sum(),
        "mean of what is left of a mean": lambda x: (x - x.mean()).mean(),
        "difference of itself": lambda x: (x - x).sum(),
        "squares that cancel": lambda x: (xp.sin(x) ** 2 + xp.cos(x) ** 2).sum(),
    }
    return {
        f"{name}, {dtype}": (function, [x.astype(dtype)])
        for name, function in functions.items()
        for dtype in ("float32", "float64")
    }


def rules(host):
    """Give the rules for a host: a name, the function and its arguments."""
    tables = [(f"wrong {name}", row[:2]) for name, row in neutral.WRONG.items()]
    tables += [(f"right {name}", row[:2]) for name, row in neutral.RIGHT.items()]
    if host == "PyTorch":
        import torch

        tables += zeros(torch).items()
    if host == "JAX":
        import jax.numpy

        tables += zeros(jax.numpy).items()
    yield from ((name, function, test_neutral.arguments(at, host)) for name, (function, at) in tables)
    if host == "TensorFlow":
        for kind, cases in zip(("wrong", "right"), discover()):
            yield from ((f"{kind} {case.name}", case.function, case.at) for case in cases.values())


def main():
    """Check every rule at every seed; fail where the bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host", nargs="?", default="PyTorch", choices=tuple(test_neutral.HOSTS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=20, help="the first seed that is left out")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    seeds = range(given.first, given.last)
    found = {}
    for name, function, at in rules(given.host):
        if given.only in name:
            verdicts = [check(function, *at, seed=seed, **QUICK).verdict for seed in seeds]
            found[name] = Counter(verdicts)
            if len(found[name]) > 1 or name.startswith("wrong") != (verdicts[0] == "wrong"):
                print(f"{name}: {list(zip(seeds, verdicts))}", flush=True)
    both = [name for name, seen in found.items() if seen["right"] and seen["wrong"]]
    settled = sum(len(seen) == 1 for seen in found.values())
    print(
        f"\n| {given.host} | {len(found)} rules | {len(seeds)} seeds | {settled} with one verdict | ", end=""
    )
    print(f"{len(both)} both right and wrong |")
    return int(bool(both) or settled < ONE_VERDICT * len(found))


if __name__ == "__main__":
    raise SystemExit(main())
