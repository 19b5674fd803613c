"""PyTorch's table of its own operators, checked one by one: `python tests/tables/opinfo.py --help`.

Every operator with a gradient, at the samples that PyTorch tests it with, in float64. An operator that is
called wrong must be listed in `KNOWN`, with a reproduction there. Each is checked in a process of its own, so
that one that crashes or never returns costs nothing but itself.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import pathlib
import sys
import time
import traceback
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

sys.path.append(str(pathlib.Path(__file__).parent))

from known_torch import KNOWN

from pullback.checker import check
from pullback.errors import NoTensorError

LIMIT = 4096  # entries of a sample; larger ones are left out


def operators() -> dict[str, Any]:
    """Give the operators that have a gradient in float64, by name."""
    chosen = [
        op for op in op_db if op.supports_autograd and torch.float64 in op.supported_backward_dtypes("cpu")
    ]
    return {f"{op.name}/{op.variant_test_name}".rstrip("/"): op for op in chosen}


def samples(op: Any, count: int | None) -> list[Any]:
    """Give the first small samples of an operator."""
    torch.manual_seed(0)
    drawn = op.sample_inputs("cpu", torch.float64, requires_grad=True)
    return list(itertools.islice((s for s in drawn if 0 < entries(s) <= LIMIT), count))


def entries(sample: Any) -> int:
    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    counts = [leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return sum(counts) if all(counts) else 0  # nothing can be measured where there are no entries


def called(op: Any) -> Any:
    """Give the operator as a user calls it, in a function of their own: nothing is excused as PyTorch's."""

    def operator(input: Any, *args: Any, **kwargs: Any) -> Any:
        return op.op(input, *args, **kwargs)

    return operator


def judged(op: Any, sample: Any, seed: int) -> dict[str, Any]:
    """Check one operator at one sample; a crash is a row, too."""
    start = time.process_time()
    try:
        report = check(
            called(op), sample.input, *sample.args, seed=seed, xla=False, export=False, **sample.kwargs
        )
    except NoTensorError as error:
        return {"verdict": "undecided", "said": str(error), "seconds": time.process_time() - start}
    except Exception as error:
        said = "".join(traceback.format_exception(error)[-3:])
        return {"verdict": "crash", "said": said, "seconds": time.process_time() - start}
    said = "; ".join(
        f"{f.probe}[{f.point}] {f.verdict}: {f.sentence}" for f in report.findings if f.verdict != "note"
    )
    notes = [f"{f.probe}[{f.point}]: {f.sentence}" for f in report.findings if f.verdict == "note"]
    return {
        "verdict": report.verdict,
        "causes": report.causes,
        "said": said,
        "notes": notes,
        "seconds": round(time.process_time() - start, 2),
    }


def rows(name: str, count: int | None, seed: int, out: Any) -> None:
    torch.set_num_threads(1)
    op = operators()[name]
    for i, sample in enumerate(samples(op, count)):
        out.send((f"{name}#{i}" if count != 1 else name, judged(op, sample, seed)))
    out.send(None)


def apart(name: str, count: int | None, seed: int, timeout: float) -> dict[str, Any]:
    """Check one operator in a process of its own."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=rows, args=(name, count, seed, its))
    process.start()
    its.close()
    found: dict[str, Any] = {}
    end = time.monotonic() + timeout
    try:
        while mine.poll(max(0.0, end - time.monotonic())):
            row = mine.recv()
            if row is None:
                break
            found[row[0]] = row[1]
        else:
            found[f"{name}#timeout"] = {"verdict": "crash", "said": f"no end after {timeout:g} s"}
    except EOFError:
        process.join()
        found[f"{name}#died"] = {"verdict": "crash", "said": f"exit code {process.exitcode}"}
    process.kill()
    process.join()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operators; all of them if none is named")
    parser.add_argument("--samples", type=int, default=0, help="small samples an operator; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds an operator")
    parser.add_argument("--json", type=pathlib.Path, help="where to write every row")
    parser.add_argument("--failing", type=pathlib.Path, help="the operators that failed in such a file")
    given = parser.parse_args()
    names = given.names or list(operators())
    if given.failing:
        before = json.loads(given.failing.read_text())
        bad = {key.split("#")[0] for key, row in before.items() if row["verdict"] != "right"}
        names = [name for name in names if name in bad]
    table: dict[str, Any] = {}
    for name in names:
        found = apart(name, given.samples or None, given.seed, given.timeout)
        table.update(found)
        for key, row in found.items():
            if row["verdict"] != "right":
                print(f"{row['verdict']:9} {key}: {row['said'][-600:]}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(table, indent=1))
    counts = {
        v: sum(row["verdict"] == v for row in table.values())
        for v in ("right", "undecided", "wrong", "crash")
    }
    print(f"{len(names)} operators, {len(table)} samples: {counts}")
    known = {key for key, row in table.items() if row["verdict"] == "wrong" and key.split("#")[0] in KNOWN}
    return int(counts["wrong"] + counts["crash"] > len(known))


if __name__ == "__main__":
    sys.exit(main())
