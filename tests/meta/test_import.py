"""`import pullback` is cheap: it imports no framework, and nothing big but NumPy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

FRAMEWORKS = {"tensorflow", "jax", "jaxlib", "torch", "keras", "flax"}


def imported_by(program: str) -> set[str]:
    """List the top-level modules in a fresh process after a program."""
    env = os.environ | {"PYTHONPATH": str(Path(pullback.__file__).parents[1])}
    shown = (
        f"{program}\nimport json, sys; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", shown], env=env, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("program", ["import pullback", "from pullback import *"])
def test_no_framework_is_imported(program):
    assert not imported_by(program) & FRAMEWORKS


def test_a_rule_is_defined_without_a_framework():
    program = "import pullback as pb\npb.custom_gradient(lambda x: (x, lambda dy: dy))"
    assert not imported_by(program) & FRAMEWORKS


def test_nothing_from_outside_but_numpy_is_imported():
    added = imported_by("import pullback") - imported_by("import numpy")
    outside = {name for name in added if name not in sys.stdlib_module_names}
    assert outside == {"pullback"}
