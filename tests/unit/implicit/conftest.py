"""JAX computes in 64 bits here, as the others do."""

import sys
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield
