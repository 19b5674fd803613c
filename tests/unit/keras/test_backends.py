"""The same rules, with one signature, in layers and losses on each backend of Keras 3."""

import ast
from pathlib import Path

import pytest
import warm

PROGRAM = Path(__file__).parent / "program.py"
PROMISES = [
    node.name
    for node in ast.parse(PROGRAM.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and not node.args.args and node.name.count("_") > 2
]


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_rules_train_save_and_load(backend, tmp_path):
    done = warm.run(PROGRAM, tmp_path, env={"KERAS_BACKEND": backend}, modules=[backend, "pullback"])
    passed = [line.removeprefix("passed: ") for line in done.stdout.splitlines() if "passed: " in line]
    assert passed == PROMISES, done.stderr[-3000:]
