"""The plan of a call: the arguments come back as they were given, with the tensors in their places."""

import dataclasses
import inspect

import numpy as np
import pytest

from pullback import plan as plans
from pullback.errors import NoTensorError
from pullback.rule import Rule

A, B, C = np.arange(3.0), np.arange(4.0), np.arange(5.0)


def rule_of(body):
    return Rule(body=body, name=body.__name__, signature=inspect.signature(body))


def positional(x, y=1.0, axis=0): ...


def keyword_only(x, *, y, axis=0): ...


def many(*xs, axis=0): ...


def named(x, **options): ...


def by_default(x, scale=B): ...


CALLS = [
    (positional, (A, B), {}),
    (positional, (A,), {"y": B, "axis": 1}),
    (positional, (), {"y": B, "x": A}),
    (positional, (A, 2.0, 1), {}),
    (positional, (A,), {"axis": -1}),
    (positional, ((A, B), [C]), {}),
    (positional, ({"b": A, "a": B},), {"y": (2, 3)}),
    (keyword_only, (A,), {"y": B}),
    (keyword_only, (), {"axis": 1, "y": B, "x": A}),
    (many, (A, B, C), {"axis": 1}),
    (many, (A, A), {}),
    (named, (A,), {"y": B, "axis": "left"}),
]


@pytest.mark.parametrize("again", [False, True], ids=["first", "found again"])
@pytest.mark.parametrize("call", range(len(CALLS)))
def test_the_body_gets_what_the_function_was_given(call, again):
    body, args, kwargs = CALLS[call]
    rule = rule_of(body)
    made, tensors = plans.plan(rule, args, kwargs)
    if again:
        made, tensors = plans.plan(rule, args, kwargs)
    bound = inspect.signature(body).bind(*args, **kwargs)
    given_args, given_kwargs = made.arguments(tensors)
    given = inspect.signature(body).bind(*given_args, **given_kwargs)
    assert repr(given.arguments) == repr(bound.arguments)
    assert len(tensors) == made.count == len(made.names)


def test_tensors_stand_in_the_order_of_the_signature():
    made, tensors = plans.plan(rule_of(positional), (), {"y": B, "x": A})
    assert [t is x for t, x in zip(tensors, (A, B))] == [True, True]
    assert made.names == ["x", "y"]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_keywords_in_another_order_are_the_same_arguments(times):
    rule = rule_of(positional)
    for _ in range(times):
        _, first = plans.plan(rule, (), {"x": A, "y": B})
        _, second = plans.plan(rule, (), {"y": B, "x": A})
        assert first[0] is second[0] is A
        assert first[1] is second[1] is B


def test_a_plan_is_found_again():
    rule = rule_of(positional)
    first, _ = plans.plan(rule, (A,), {"axis": 1})
    second, tensors = plans.plan(rule, (C,), {"axis": 1})
    assert first is second
    assert tensors == [C] or tensors[0] is C


@pytest.mark.parametrize("other", [0, True, None, "1", 1.0])
def test_another_static_is_another_plan(other):
    rule = rule_of(positional)
    plans.plan(rule, (A,), {"axis": 1})
    made, tensors = plans.plan(rule, (A,), {"axis": other})
    found = made.arguments(tensors)[1]["axis"]
    assert (type(found), found) == (type(other), other)


def test_calls_that_differ_in_a_constant_find_their_plans_again():
    rule = rule_of(positional)
    made = [plans.plan(rule, (A, y), {"axis": axis})[0] for y in (0.0, -0.0, 2.0) for axis in (0, 1)]
    again = [plans.plan(rule, (A, y), {"axis": axis})[0] for y in (0.0, -0.0, 2.0) for axis in (0, 1)]
    assert len(set(made)) == 6
    assert again == made
    assert [str(plan.slots[1].leaves[0]) for plan in made] == ["0.0", "0.0", "-0.0", "-0.0", "2.0", "2.0"]


def test_a_constant_that_is_another_one_in_every_call_fills_no_memory():
    rule = rule_of(positional)
    for step in range(1000):
        made, tensors = plans.plan(rule, (A, step / 7), {})
        assert made.arguments(tensors)[0][1] == step / 7
    ((_, _, known),) = rule.plans.values()
    assert len(known) < 100


@pytest.mark.parametrize(
    ("args", "closed"), [((A,), True), ((A, 2.0, 1), True), ((A, [B]), False), ((A, object()), False)]
)
def test_a_call_of_tensors_and_constants_is_closed(args, closed):
    assert plans.plan(rule_of(positional), args, {})[0].closed is closed


def test_a_default_that_is_a_tensor_is_a_tensor_of_the_call():
    made, tensors = plans.plan(rule_of(by_default), (A,), {})
    assert made.count == 2
    assert tensors[1] is B
    assert not made.flat


def test_a_plan_holds_no_tensor():
    made, _ = plans.plan(rule_of(positional), ((A, B), C), {})
    assert not any(isinstance(leaf, np.ndarray) for slot in made.slots for leaf in slot.leaves)


def test_a_plan_is_a_frozen_value():
    made, _ = plans.plan(rule_of(positional), (A,), {})
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.count = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.slots[0].name = "z"


@pytest.mark.parametrize(
    ("args", "flat"), [((A,), True), ((A, B), True), ((A, B, 1), False), (((A, B),), False)]
)
def test_a_call_of_tensors_alone_is_flat(args, flat):
    assert plans.plan(rule_of(positional), args, {})[0].flat is flat


def test_a_number_is_a_tensor_if_nothing_else_is():
    made, tensors = plans.plan(rule_of(positional), (2.0,), {"axis": 1})
    assert tensors[0] == 2.0
    assert made.names == ["x", "y"]


def test_a_call_without_tensors_is_refused_by_name():
    with pytest.raises(NoTensorError, match=r"no argument is a tensor \(x=int, axis=int\)"):
        plans.plan(rule_of(lambda x, axis=0: x), (3,), {})


def test_a_call_that_python_refuses_says_whose():
    with pytest.raises(TypeError, match=r"positional.*missing a required argument"):
        plans.plan(rule_of(positional), (), {})
