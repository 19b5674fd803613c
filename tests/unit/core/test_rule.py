"""A rule says what it is: its name, its place, its claim, and what its body can reach."""

import functools
import inspect

import numpy as np
import pytest

import pullback as pb
from pullback import rule
from pullback.rule import EXACT, Intent, Rule

SCALE = 3.0


def helper(x):
    return x * SCALE


def made(body, **more):
    return Rule(body, body.__name__, inspect.signature(body), source=rule.source_of(body), **more)


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        (EXACT, "the derivative"),
        (Intent("like", function=np.tanh), "the derivative of tanh"),
        (Intent("differs", reason="straight-through"), "different on purpose: straight-through"),
    ],
)
def test_an_intent_reads_as_a_claim(intent, text):
    assert str(intent) == text
    assert text in repr(made(helper, intent=intent))


def test_a_rule_shows_all_that_is_known_of_it():
    line = helper.__code__.co_firstlineno
    assert repr(made(helper)) == f"<rule helper(x) · the derivative · test_rule.py:{line}>"
    shown = repr(made(helper, order=1, pushforward=helper))
    assert shown.endswith(f"the derivative · order 1 only · with a pushforward · test_rule.py:{line}>")
    assert made(helper).where == f"helper (test_rule.py:{line})"


def test_a_rule_is_a_frozen_value():
    with pytest.raises(AttributeError):
        made(helper).name = "other"
    assert made(helper) != made(helper)  # each is itself
    assert made(helper).memo is not made(helper).memo


def test_rules_of_one_factory_share_the_code_that_runs():
    def factory(k):
        return pb.custom_gradient(lambda x: (k * x, lambda dy: k * dy)).rule

    assert factory(1).identity is factory(2).identity
    assert factory(1).identity is not made(helper).identity


class Called:
    name = "by attribute"

    def __call__(self, x):
        return x

    def method(self, x):
        return x


def test_a_callable_is_named_as_its_user_would():
    assert rule.name_of(helper) == "helper"
    assert rule.name_of(functools.partial(functools.partial(helper), 1)) == "helper"
    assert rule.name_of(Called().method) == "method"
    assert rule.name_of(Called()) == "by attribute"
    assert rule.name_of(type("Unnamed", (), {"__call__": helper})()) == "Unnamed"
    assert rule.filled_in(functools.partial(functools.partial(helper), 1)) is helper


def test_the_place_is_that_of_the_function_behind_its_decorators():
    @functools.wraps(helper)
    def wrapper(x):
        return helper(x)

    assert rule.source_of(wrapper) == rule.source_of(helper)
    assert rule.source_of(len) == rule.source_of(3) == ""
    assert rule.at("f", "") == "f"
    assert rule.at("f", "a.py:1") == "f (a.py:1)"


def test_what_was_written_is_found_behind_a_rule_and_a_decorator():
    body = functools.wraps(helper)(lambda x: (x, lambda dy: dy))
    assert rule.written(body) is helper
    assert rule.written(pb.custom_gradient(body)) is helper
    assert rule.written(helper) is helper


def test_a_body_reaches_its_closure_and_its_globals_also_through_functions_inside_it():
    kept = np.ones(2)

    def body(x):
        def grad(dy):
            return dy * SCALE

        return helper(x) * kept, grad

    found = dict(made(body).captured())
    assert found["kept"] is kept
    assert found["helper"] is helper
    assert found["SCALE"] == SCALE
    assert "np" not in found
    assert rule.global_names(body.__code__) == ("SCALE", "helper")


def test_an_empty_cell_and_a_builtin_are_passed_over():
    def body(x):
        return later

    assert dict(rule.reach(body)) == {}
    later = 1
    assert dict(rule.reach(body)) == {"later": 1}
    assert dict(rule.reach(len)) == {}


def test_names_in_a_code_hold_attributes_too():
    assert {"linalg", "norm", "np"} <= rule.names_in((lambda x: lambda: np.linalg.norm(x)).__code__)
