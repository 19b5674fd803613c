"""The text of a rule is what its author wrote of it, each part once."""

import functools
import math

import numpy as np

import pullback as pb
from pullback.view.definition import reached
from pullback.view.text import LONGEST, text_of


def forward(x):
    """Square it."""
    return x * x


def backward(x, dy):
    return 2 * x * dy


class Both:
    """Hold both."""

    def forward(self, x):
        return x

    def backward(self, dy):
        return dy


def test_parts_stand_in_the_order_of_their_lines_each_once():
    text, docstring = text_of([backward, forward, backward, 3, None, (1,), "x"])
    assert text == (
        'def forward(x):\n    """Square it."""\n    return x * x\n\n\n'
        "def backward(x, dy):\n    return 2 * x * dy"
    )
    assert docstring == "Square it."


def test_a_class_holds_its_methods():
    text, docstring = text_of([Both, Both.forward, Both.backward])
    assert text.startswith("class Both:")
    assert text.count("def backward") == 1
    assert docstring == "Hold both."


def test_what_no_user_wrote_has_no_text():
    made = {}
    exec("def made(x):\n    return x", made)
    assert text_of([math.sin, np.sin, print, made["made"], pb.stop_gradient, object()]) == ("", "")


def test_a_rule_of_ours_is_what_was_given_to_it():
    def grad(dy, x):
        return dy * 2 * x

    rule = pb.with_gradient(functools.partial(forward), grad)
    text, _ = text_of(reached(rule))
    assert "return x * x" in text
    assert "return dy * 2 * x" in text
    assert "pullback" not in text


def test_a_very_long_source_is_cut():
    text, _ = text_of([test_a_very_long_source_is_cut] * 3)
    assert len(text) < LONGEST
    long = type("Long", (), {"__module__": "m", "__doc__": "x" * 2 * LONGEST})
    assert len(text_of([long])[1]) == LONGEST
