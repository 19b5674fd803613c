"""What type checkers are told of a program is so when it runs."""

import importlib.util
from pathlib import Path

import numpy as np

SAMPLE = Path(__file__).parents[1] / "typing" / "user_code.py"


def test_the_sample_of_user_code_runs():
    spec = importlib.util.spec_from_file_location("user_code", SAMPLE)
    assert spec is not None
    assert spec.loader is not None
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    sample.right(np.ones(3))
