"""Let the tests find the rules, and run on each framework."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=["torch", "jax", "tensorflow"])
def framework(request):
    return request.param
