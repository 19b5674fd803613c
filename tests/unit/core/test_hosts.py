"""The host is found from the data, and only among frameworks that are already imported."""

import subprocess
import sys

import numpy as np
import pytest

import pullback as pb


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_body_that_names_no_framework_gives_numpy_for_numpy():
    done = run(
        "import numpy as np, pullback as pb, sys\n"
        "f = pb.custom_gradient(lambda x: (2 * x, lambda dy: 2 * dy))\n"
        "y = f(np.ones(3))\n"
        "assert type(y) is np.ndarray and y.tolist() == [2, 2, 2]\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


def test_unbroadcast_works_on_numpy_alone():
    assert pb.unbroadcast(np.ones([4, 3], np.float32), like=np.zeros(3, np.float32)).tolist() == [4.0] * 3


def test_unbroadcast_refuses_what_was_not_broadcast():
    with pytest.raises(pb.errors.CotangentShapeError, match="to which that of `like` broadcasts"):
        pb.unbroadcast(np.ones([4, 3]), like=np.zeros(2))


def test_an_elementwise_rule_that_names_no_framework_gives_numpy_for_numpy():
    cube = pb.elementwise(lambda x: x * x * x, lambda x: 3 * x * x)
    assert cube(np.array([2.0])).tolist() == [8.0]
    assert cube(2.0) == 8.0
