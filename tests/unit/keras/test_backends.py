"""The same rules, with one signature, in layers and losses on each backend of Keras 3."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

PROGRAM = Path(__file__).parent / "program.py"
PROMISES = [
    node.name
    for node in ast.parse(PROGRAM.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and not node.args.args and node.name.count("_") > 2
]


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_rules_train_save_and_load(backend, tmp_path):
    env = os.environ | {
        "KERAS_BACKEND": backend,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": str(Path(pullback.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], env=env, capture_output=True, text=True, check=False
    )
    passed = [line.removeprefix("passed: ") for line in done.stdout.splitlines() if "passed: " in line]
    assert passed == PROMISES, done.stderr[-3000:]
