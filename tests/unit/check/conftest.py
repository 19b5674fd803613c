"""Subjects made of NumPy alone: the numerics need no framework."""

import numpy as np
import pytest

from pullback.view.subject import Subject, counted


@pytest.fixture
def subject_of():
    """Build a subject of one input from a forward and a pullback."""

    def build(forward, pullback, x, **more):
        x = np.asarray(x)
        return counted(
            Subject(
                name="f",
                inputs=(x,),
                names=("x",),
                differentiable=(True,),
                forward=lambda inputs: (np.asarray(forward(inputs[0])),),
                pullback=lambda inputs, cotangents: (pullback(inputs[0], cotangents[0]),),
                is_rule=True,
                **more,
            )
        )

    return build
