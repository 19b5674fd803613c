"""One framework, asked in this process: does it load, is it new enough, what does a small rule do on it.

`python -m pullback.doctor.measure NAME` prints the answer as its last line. The capabilities are those that
the checker sees, so that the table cannot promise more than a rule keeps.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback import hosts
from pullback.checker.capabilities import runs_in
from pullback.checker.finding import Report
from pullback.dtypes import COMPUTING
from pullback.errors import HostError
from pullback.view import subject_of

POINTS = (0.5, 1.5, -0.75)


def measured(name: str) -> dict[str, Any]:
    """Load a framework and its host, and measure what a rule can do there."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return {"status": "missing", "reason": "not installed"}
        return {"status": "broken", "reason": first_line(error)}
    except Exception as error:  # an import runs any code
        return {"status": "broken", "reason": first_line(error)}
    found = {"version": str(getattr(module, "__version__", "")), "path": str(getattr(module, "__file__", ""))}
    if not found["version"]:
        return {**found, "status": "broken", "reason": f"{found['path'] or name} has no __version__"}
    try:
        host = hosts.host(name)
    except HostError:
        needed = hosts.SUPPORTED[name].needed
        return {**found, "status": "old", "reason": f"{found['version']} found, {needed} needed"}
    except Exception as error:
        return {**found, "status": "broken", "reason": first_line(error)}
    try:
        return {**found, "status": "works", "capabilities": capabilities(host)}
    except Exception as error:
        return {**found, "status": "broken", "reason": first_line(error)}


def capabilities(host: Any) -> dict[str, str]:
    """Run one rule on a host in every way, and say what came out."""

    @pb.custom_gradient
    def cube(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy * 3 * x * x

        return x * x * x, grad

    x = host.tensor(np.array(POINTS, np.float32), where="doctor", argument="x")
    report = pb.check(cube, x, seed=0)
    if report.verdict != "right":
        raise ArithmeticError(f"a right rule is judged {report.verdict} on it")
    table = dict(report.capabilities)
    shown = {"reverse": table.get("reverse", "untested"), "forward": table.get("forward", "no")}
    shown["second order"] = table.get("second order", "no")
    shown["third order"] = _yes(lambda: third_order(host, cube, x))
    for row, probe in (("compiled", "compiled"), ("batched", "batching")):
        shown[row] = _listed(report, probe)
    table["float64"] = runs_in(subject_of(host, cube, (x,), {}), "float64")
    shown["dtypes"] = ", ".join(dtype for dtype in COMPUTING if table.get(dtype) == "yes") or "no"
    shown["export"] = table.get("export", "no")
    shown["override"] = _yes(lambda: overridden(host, x))
    return shown


def _listed(report: Report, probe: str) -> str:
    """Name the ways of one probe that work, and those that do not."""
    answers = {f.capability: f.answer for f in report.findings if f.probe == probe and f.capability}
    named = [way if answer == "yes" else f"{way}: {answer}" for way, answer in answers.items()]
    return ", ".join(named) or "no"


def _yes(right: Callable[[], bool]) -> str:
    """Say what a question gave: a wrong number is worse than a refusal."""
    try:
        return "yes" if right() else "wrong"
    except Exception as error:
        return f"no ({type(error).__name__})"


def _pull(host: Any, function: Any, x: Any) -> Any:
    """Give the gradient of the sum of a function."""
    y = host.tensor(np.ones(len(POINTS)), where="doctor", argument="dy")
    (found,) = host.vjp(lambda x: [function(x)], [x], [host.conform(y, x)])
    return found


def third_order(host: Any, function: Any, x: Any) -> bool:
    """Tell whether the third derivative of a cube is 6."""
    third = _pull(host, lambda x: _pull(host, lambda x: _pull(host, function, x), x), x)
    return bool(np.allclose(np.asarray(third), 6.0))


def overridden(host: Any, x: Any) -> bool:
    """Tell whether an operation inside a function takes another gradient."""
    tanh = host.arrays.tanh

    def five(dy: Any) -> Any:
        return dy * 5

    changed = pb.override(lambda x: tanh(x) * 2, {tanh: five})
    return bool(np.allclose(np.asarray(_pull(host, changed, x)), 10.0))


def first_line(error: BaseException) -> str:
    """Write an exception in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


if __name__ == "__main__":
    answer = measured(sys.argv[1])
    sys.stdout.flush()
    print("\n" + json.dumps(answer), flush=True)
