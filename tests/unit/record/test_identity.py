"""Rules are told apart by what the user wrote, not by the wrapper around it."""

import pullback as pb
from pullback.record.identity import identity_of
from pullback.view.definition import Own, location_of


@pb.custom_gradient
def first(x):
    return x, lambda dy: dy


@pb.custom_gradient(differs="another")
def second(x):
    return x, lambda dy: dy


def test_two_rules_are_two():
    assert identity_of(Own(first)).key != identity_of(Own(second)).key
    assert location_of(first) != location_of(second)
    assert location_of(first)[0] == __file__
