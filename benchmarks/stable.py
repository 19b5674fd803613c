"""How right the ready rules are, beside autodiff of the obvious formula and beside the frameworks' own.

For each rule, framework and dtype: the worst error of a gradient over the grid, in units of the last place.
Ours must keep its bound; and a compiled step of it, value and gradient, may take at most 1.1 times that of
the obvious formula. Where the memory of a process comes to lie is chance, and may cost an arm half of its
time again: each framework is timed in processes of its own, a row that misses in up to five, and the fastest
round of all counts. `--write` puts every place where a framework's own is worse than ours, and the picture,
into the pages of which every rule was measured. A file `stable_….py` beside this one with a list `ROWS` adds
rules. TensorFlow Probability is measured where it is installed.

    python benchmarks/stable.py [--rules softplus,logit] [--hosts jax,torch] [--no-time] [--cpu] [--write]

`--cpu` counts the time of the processor, for a machine that is not quiet.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

import numpy as np
from side_by_side import fastest_of_processes, floors, judge, least, tell
from slopes import FRAMEWORKS, slopes
from stable_picture import picture

import pullback as pb

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PICTURE = DOCS / "images" / "ops.svg"
LIBRARIES = {"tfp.math": ("tensorflow", "tensorflow_probability")}  # the framework it is for, the package
DTYPES = ("float64", "float32", "float16", "bfloat16")
SLOWER = 1.1
PROCESSES = 5


def rows():
    """Collect the rows of every file beside this one that has some."""
    found = []
    for path in sorted(HERE.glob("stable_*.py")):
        found += getattr(importlib.import_module(path.stem), "ROWS", [])
    return found


def obvious(row):
    def formula(*xs):
        return row.obvious(pb.namespace(*xs), *xs)

    return formula


def worst(row, framework, function, dtype):
    """Give the worst error of the gradients over the grid."""
    dy = None if row.cotangent is None else row.cotangent(dtype)
    errors = row.errors(dtype, slopes(framework, function, row.points(dtype), dy))
    return max(float(np.max(error)) for error in errors[1:])


def worst_own(row, whose, dtype):
    """Give that of a framework's or library's own function; None where it has none, or none of this dtype."""
    framework, package = LIBRARIES.get(whose, (whose, whose))
    function = row.own.get(whose)
    if function is None or importlib.util.find_spec(package) is None:
        return None
    try:
        return worst(row, framework, function, dtype)
    except Exception as error:  # a framework refuses in whatever words it has
        print(f"{row.name}: {whose} has none in {dtype}: {str(error).splitlines()[0][:80]}")
        return None


def worst_obvious(row, framework, dtype):
    """Give that of the obvious formula; None where the framework cannot run it in this dtype."""
    try:
        return worst(row, framework, obvious(row), dtype)
    except Exception as error:
        print(f"{row.name}: {framework} has no formula in {dtype}: {str(error).splitlines()[0][:80]}")
        return None


def shown(error):
    if error is None:
        return "–"
    return "not finite" if np.isinf(error) else f"{error:.1f}" if error < 1000 else f"{error:.0e}"


def measured(asked, frameworks):
    """Give, by rule, framework and dtype, the errors of ours, of the obvious formula, and of their own."""
    found = {}
    for row in asked:
        for framework in frameworks:
            for dtype in DTYPES:
                errors = {
                    "ours": worst(row, framework, row.ours, dtype),
                    "obvious": worst_obvious(row, framework, dtype),
                    "own": worst_own(row, framework, dtype),
                }
                found[row.name, framework, dtype] = errors
                for library, (host, _) in LIBRARIES.items():
                    if host == framework and library in row.own:
                        theirs = {
                            "ours": errors["ours"],
                            "obvious": None,
                            "own": worst_own(row, library, dtype),
                        }
                        found[row.name, library, dtype] = theirs
                        errors = {**errors, library: theirs["own"]}
                text = "  ".join(f"{arm} {shown(error):>10}" for arm, error in errors.items())
                print(f"{row.name:<34} {framework:<11} {dtype:<9} {text}", flush=True)
    return found


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────


def compiled(framework, f, arrays):
    """Give a compiled step of a function: its value, and the gradient of its sum."""
    if framework == "tensorflow":
        import tensorflow as tf

        xs = [tf.constant(a) for a in arrays]

        @tf.function(jit_compile=True)
        def step():
            with tf.GradientTape() as tape:
                tape.watch(xs)
                y = f(*xs)
            return y, tape.gradient(y, xs)

        return lambda: step()[0].numpy()
    if framework == "jax":
        import jax

        def both(*xs):
            y, pull = jax.vjp(f, *xs)
            return y, pull(jax.numpy.ones_like(y))

        run, xs = jax.jit(both), [jax.numpy.asarray(a) for a in arrays]
        return lambda: jax.block_until_ready(run(*xs))
    import torch

    xs = [torch.tensor(a, requires_grad=True) for a in arrays]
    run = torch.compile(lambda *xs: f(*xs))
    ones = torch.ones_like(run(*xs))
    return lambda: torch.autograd.grad(run(*xs), xs, ones)


def timed(asked, framework, rounds, clock):
    """Give the time of ours beside that of the obvious formula and of the framework's own, compiled.

    What its compiler refuses is left out.
    """
    found = {}
    for row in asked:
        if framework == "torch":
            import torch

            torch.compiler.reset()  # it gives up a line that it has compiled for eight functions
        arrays, arms = row.timed(), {}
        for arm, f in {"obvious": obvious(row), "ours": row.ours, "own": row.own.get(framework)}.items():
            run = None if f is None else compiled(framework, f, arrays)
            if run is not None and (arm == "ours" or runs(run)):
                arms[arm] = run
        found[row.name] = floors(arms, calls=5, rounds=rounds, clock=clock)
    return found


def runs(run):
    """Tell whether a framework's compiler takes it."""
    try:
        run()
    except Exception:  # it refuses in whatever words it has
        return False
    return True


def bar(t):
    """Give the time of the obvious formula; where no compiler takes it, that of the framework's own."""
    return t.get("obvious", t.get("own", np.inf))


def times(asked, frameworks, options):
    """Give the times as rows for the judge: those of one process, or of several where a bar is missed."""
    for framework in frameworks:
        left, found = [row.name for row in asked], {}
        for _ in range(PROCESSES):
            command = ["--inside", framework, "--rounds", str(options.rounds), *["--cpu"] * options.cpu]
            told = fastest_of_processes(1, __file__, *command, "--rules", ",".join(left))
            found |= {name: least(found.get(name, t), t) for name, t in told.items()}
            left = [
                name for name in left if found[name]["ours"] > SLOWER * found[name].get("obvious", np.inf)
            ]
            if not left:
                break
        for name, t in found.items():
            title, text = (
                f"{framework} {name}: time",
                ", ".join(f"{arm} {us:.0f} µs" for arm, us in t.items()),
            )
            print(f"{title}: {text}", flush=True)
            if "obvious" in t:
                yield f"{title} / obvious", t["ours"] / t["obvious"], SLOWER


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────


def table(found):
    """Write the places where a framework's own function is worse than ours, a row a function."""
    lines = [f"| rule | framework | {' | '.join(f'its own, {dtype}' for dtype in DTYPES)} | ours, at worst |"]
    lines.append("| --- | --- |" + " --- |" * (len(DTYPES) + 1))
    for name, framework in dict.fromkeys(key[:2] for key in found):
        errors = [found[name, framework, dtype] for dtype in DTYPES]
        worse = [e["own"] is not None and e["own"] > max(e["ours"], 1.0) for e in errors]
        if any(worse):
            cells = [shown(e["own"]) if bad else "" for e, bad in zip(errors, worse)]
            cells.append(shown(max(e["ours"] for e in errors)))
            lines.append(f"| `{name}` | {framework} | {' | '.join(cells)} |")
    return lines


def overview(found):
    """Write the worst error of each rule over all frameworks and dtypes."""
    lines = ["| rule | ours, at worst | autodiff of the obvious formula, at worst |", "| --- | --- | --- |"]
    for name in dict.fromkeys(key[0] for key in found):
        worst_of = [
            max((errors[arm] for key, errors in found.items() if key[0] == name and errors[arm] is not None))
            for arm in ("ours", "obvious")
        ]
        lines.append(f"| `{name}` | {' | '.join(map(shown, worst_of))} |")
    return lines


def written(found):
    """Put the tables and their versions into each page that was measured whole, and the picture."""
    packages = [*FRAMEWORKS, *(name for _, name in LIBRARIES.values() if importlib.util.find_spec(name))]
    versions = ", ".join(f"{name} {importlib.import_module(name).__version__}" for name in packages)
    by_name = {row.name: row for row in rows()}
    for page in {row.page for row in by_name.values()}:
        here = {name for name, row in by_name.items() if row.page == page}
        some = {key: errors for key, errors in found.items() if key[0] in here}
        if {key[0] for key in some} != here:
            continue
        text = (DOCS / page).read_text(encoding="utf-8")
        parts = {"overview": overview(some), "worse": table(some), "versions": [f"Measured with {versions}."]}
        for name, lines in parts.items():
            block = "\n".join([f"<!-- {name} -->", "", *lines, "", f"<!-- end of {name} -->"])
            text = re.sub(
                rf"<!-- {name} -->.*?<!-- end of {name} -->", lambda _, b=block: b, text, flags=re.S
            )
        (DOCS / page).write_text(text, encoding="utf-8")
        if page == "ops.md":
            PICTURE.write_text(picture(by_name, obvious), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rules", default="", help="names, or a page of the documentation")
    parser.add_argument("--hosts", default=",".join(FRAMEWORKS))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--no-error", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--inside", choices=list(FRAMEWORKS), help="tell the times of one framework")
    options = parser.parse_args()
    for framework in [options.inside] if options.inside else FRAMEWORKS:
        importlib.import_module(framework)
    importlib.import_module("jax.scipy.special")
    warnings.simplefilter("ignore")
    frameworks = options.hosts.split(",")
    names = options.rules.split(",")
    asked = [row for row in rows() if not options.rules or row.name in names or row.page in names]
    if options.inside:
        clock = time.process_time if options.cpu else time.perf_counter
        tell(timed(asked, options.inside, options.rounds, clock))
        return
    found = {} if options.no_error else measured(asked, frameworks)
    if options.write:
        written(found)
    bounds = {row.name: row.bound for row in asked}
    results = [
        (f"{' '.join(key)}: error", errors["ours"], bounds[key[0]])
        for key, errors in found.items()
        if key[1] not in LIBRARIES
    ]
    if not options.no_time:
        results += times(asked, frameworks, options)
    judge(results)


if __name__ == "__main__":
    main()
