"""The bar of mending: how many wrong rules of the zoo are mended, at what cost, and are the patches right.

A patch is judged by what the search never sees: the plain gradient of the body at twenty further points, and
at another shape.

    python tests/wrong/mended.py [HOST] [--only NAME] [--budget 10] [--json FILE] [--part 0/1]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import neutral
import numpy as np
import test_neutral

from pullback.checker import check
from pullback.checker.budget import Budget
from pullback.checker.points import own_points
from pullback.checker.settings import Settings
from pullback.mend.diff import edited
from pullback.mend.search import Search, mend

QUICK = {"xla": False, "export": False}
BARS = {"TensorFlow": 0.88, "JAX": 0.80, "PyTorch": 0.80}
MEDIAN, NINETIETH = 2.0, 6.0  # CPU seconds


def rules(host):
    """Give the wrong rules for a host: a name, the function and its arguments."""
    for name, (function, at, _) in neutral.WRONG.items():
        yield f"neutral {name}", function, test_neutral.arguments(at, host)
    if host == "TensorFlow":
        from zoo import discover

        for case in discover()[0].values():
            yield case.name, case.function, case.at


def apart(function, at, report, patch):
    """Compare the patched rule with the plain gradient of the body at points that the search did not see."""
    search = Search(function, tuple(at), {}, report, Budget(60))
    made = search.prover.subject_of(edited(patch.text, patch.spans))
    made = made.astype("float64") or made
    rng = np.random.default_rng(12345)
    points = [p for p in own_points(made, Settings(seed=987).rng(1)) if not p.extreme]
    given = [tuple(_moved(rng, x) for x in made.inputs) for _ in range(20)]
    worst = []
    for label, inputs in [
        *(("moved", g) for g in given),
        *((p.label, p.inputs) for p in points if p.resized),
    ]:
        try:
            outputs = made.forward(inputs)
            v = tuple(np.asarray(rng.normal(size=o.shape), o.dtype) for o in outputs)
            plain, patched = made.body_pullback(inputs, v), made.pullback(inputs, v)
        except Exception:
            continue
        for a, b in zip(plain, patched):
            if (
                a is None
                or b is None
                or not np.isfinite(a).all()
                or not all(np.isfinite(o).all() for o in outputs)
            ):
                continue
            if a.shape != b.shape or np.abs(a - b).max(initial=0) > 1e-5 * (1e-3 + np.abs(a).max(initial=0)):
                worst.append(label)
    return worst


def _moved(rng, x):
    if x.dtype.kind not in "fc":
        return x
    return (x * rng.uniform(0.5, 1.5, x.shape)).astype(x.dtype)


def main():
    """Mend every rule; fail where a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host", nargs="?", default="TensorFlow", choices=tuple(BARS))
    parser.add_argument("--only", default="")
    parser.add_argument("--budget", type=float, default=10)
    parser.add_argument("--json", default="")
    parser.add_argument("--part", default="0/1", help="1/3: the second of three parts")
    given = parser.parse_args()
    rows = []
    part, parts = map(int, given.part.split("/"))
    for n, (name, function, at) in enumerate(rules(given.host)):
        if n % parts != part:
            continue
        if given.only and not any(part in name for part in given.only.split(",")):
            continue
        report = check(function, *at, seed=1, **QUICK)
        start = time.process_time()
        found = mend(function, tuple(at), {}, report, budget=given.budget)
        seconds = time.process_time() - start
        row = {"name": name, "seconds": seconds, "tried": found.tried, "refused": found.refused}
        row["words"] = [p.words for p in found.patches]
        row["causes"] = report.causes
        row["explains"] = [p.explains for p in found.patches]
        row["orders"] = [p.order for p in found.patches]
        row["new"] = [[s.new for s in p.spans] for p in found.patches]
        row["apart"] = [apart(function, at, report, p) for p in found.patches]
        rows.append(row)
        mark = "ok " if found.patches else "no "
        if any(row["apart"]):
            mark = "BAD"
        said = row["words"][0] if row["words"] else found.refused or ""
        said += f" {row['apart']}" if any(row["apart"]) else ""
        print(f"{mark} {seconds:5.2f}s {found.tried:5d} {name}: {said}", flush=True)
    mended = [row for row in rows if row["words"]]
    times = sorted(row["seconds"] for row in rows) or [0.0]
    wrong = [row["name"] for row in mended if any(row["apart"])]
    share = len(mended) / max(len(rows), 1)
    median, ninetieth = times[len(times) // 2], times[int(0.9 * (len(times) - 1))]
    print(f"\n| {given.host} | {len(rows)} rules | {len(mended)} mended ({share:.0%}) | ", end="")
    print(
        f"median {median:.2f} s, 90th percentile {ninetieth:.2f} s | {len(wrong)} differ elsewhere: {wrong} |"
    )
    if given.json:
        with open(given.json, "w") as stream:
            json.dump(rows, stream, indent=1)
    return int(share < BARS[given.host] or bool(wrong) or median > MEDIAN or ninetieth > NINETIETH)


if __name__ == "__main__":
    raise SystemExit(main())
