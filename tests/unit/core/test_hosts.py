"""The host is found from the data, and only among frameworks that are already imported."""

import subprocess
import sys

import numpy as np
import pytest

import pullback as pb


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_a_framework_a_call_says_what_to_import():
    done = run(
        "import numpy as np, pullback as pb, sys\n"
        "f = pb.custom_gradient(lambda x: (x, lambda dy: dy))\n"
        "try:\n    f(np.ones(3))\nexcept pb.errors.HostError as error:\n    print(error)\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr
    assert "no framework is imported" in done.stdout
    assert "import tensorflow as tf" in done.stdout


def test_unbroadcast_works_on_numpy_beside_a_host():
    assert (
        pb.unbroadcast(np.ones([4, 3], np.float32), like=np.zeros(3, np.float32)).numpy().tolist()
        == [4.0] * 3
    )


def test_unbroadcast_refuses_what_was_not_broadcast():
    with pytest.raises(ValueError, match="cannot have been broadcast"):
        pb.unbroadcast(np.ones([4, 3]), like=np.zeros(2))
