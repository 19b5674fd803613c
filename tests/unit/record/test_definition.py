"""What a user wrote is found behind rules, decorators and partial arguments, and stands where he wrote it."""

import functools

import numpy as np

import pullback as pb
from pullback.view.definition import Own, inner


def steps(x):
    return np.round(x)


EXTERNAL = pb.external(steps, output=lambda x: x)
ROUND_RULE = pb.surrogate(EXTERNAL, like=lambda x: x)


def test_a_rule_around_a_rule_stands_where_the_function_does():
    assert inner(EXTERNAL) is inner(ROUND_RULE) is steps
    assert Own(ROUND_RULE).location == Own(EXTERNAL).location
    assert Own(ROUND_RULE).location[0].endswith("test_definition.py")


def test_partial_arguments_are_looked_through():
    assert inner(functools.partial(ROUND_RULE)) is steps
