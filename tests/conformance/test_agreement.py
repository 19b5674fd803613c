"""Every rule gives the same numbers on every host, to rounding, and the same errors."""

from __future__ import annotations

import functools

import known
import numpy as np
import pytest
from conformance_cases import CASES, FILES, RULES
from conformance_hosts import HOSTS, QUESTIONS, Only, ramp, smooth

import pullback
from pullback import errors
from pullback.example import examples_of

REFERENCE = "tensorflow"


@functools.cache
def subject(name: str, host: str) -> Only:
    """Give one function for all questions: a host may answer several at once."""
    case = CASES[name]
    return HOSTS[host].only(case.flat(case.function(host)), case.arrays, case.moving)


@functools.cache
def outcome(name: str, host: str, question: str) -> list[np.ndarray] | type:
    """Give the numbers, or the class of the error that pullback raised."""
    asked = HOSTS[host]
    try:
        return asked.run(lambda: getattr(asked, question)(subject(name, host)))
    except errors.PullbackError as error:
        return type(error)


# a compiler takes seconds where others take milliseconds: it is asked at the first example of a rule
COMPILED = {"compiled"}
ASKED = [
    (name, question)
    for name in CASES
    for question in QUESTIONS
    if question not in COMPILED or name.endswith("-0")
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("name", "question"), ASKED)
def test_a_rule_is_the_same_on_every_host(name, question, host):
    def test():
        found, expected = outcome(name, host, question), outcome(name, REFERENCE, question)
        if isinstance(expected, type) or isinstance(found, type):
            assert found is expected
            return
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected):
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)

    known.hold(host, name, question, test)


def in_numpy(name):
    """Give the function whose derivative a rule claims to be, as a function of NumPy arrays."""
    case = CASES[name]
    function = case.intent.function if case.intent.kind == "like" else case.function("")
    return case.flat(function)


NEUTRAL = [name for name, case in CASES.items() if "" in case.functions]


@pytest.mark.parametrize("name", NEUTRAL)
def test_the_value_is_that_of_numpy(name):
    case = CASES[name]
    for mine, theirs in zip(
        outcome(name, REFERENCE, "value"), smooth(case.flat(case.function(""))(*case.arrays))
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


# rules that cut an argument off by None: differences see it, and the derivative does not
CUT = {"stop_gradient-0", "scale_gradient-1"}
CLAIMED = [name for name in NEUTRAL if CASES[name].intent.kind != "differs" and name not in CUT]


@pytest.mark.parametrize("name", CLAIMED)
def test_the_gradient_is_that_of_differences(name):
    """Central differences of NumPy's values: ⟨dx, h⟩ = Re⟨dy, (f(x + th) − f(x − th)) / 2t⟩."""
    case, step = CASES[name], 1e-6
    f, arrays = in_numpy(name), case.arrays
    for k, (place, dx) in enumerate(zip(case.moving, outcome(name, REFERENCE, "gradient"))):
        moved = ramp(arrays[place], 5.0 + k)
        up, down = list(arrays), list(arrays)
        up[place], down[place] = arrays[place] + step * moved, arrays[place] - step * moved
        slopes = [(a - b) / (2 * step) for a, b in zip(smooth(f(*up)), smooth(f(*down)))]
        expected = sum(np.vdot(ramp(slope, 1.0 + i), slope).real for i, slope in enumerate(slopes))
        np.testing.assert_allclose(np.vdot(dx, moved).real, expected, rtol=1e-7, atol=1e-8)


# ── the suite itself ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_an_example(name):
    assert examples_of(next(iter(RULES[name].values())))


@pytest.mark.parametrize("entry", known.DIFFERENCES, ids=lambda entry: f"{entry['host']}-{entry['question']}")
def test_every_known_difference_is_complete_and_is_about_something(entry):
    assert known.complete(entry)
    assert any(
        known.known(host, name, question) is entry
        for host in entry["host"].split("|")
        for name in CASES
        for question in QUESTIONS
    )


def test_every_way_to_make_a_rule_is_used():
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    makers = ["custom_gradient", "elementwise", "with_gradient", "surrogate", "straight_through"]
    assert set(makers) <= set(pullback.__all__)
    for maker in makers:
        assert f"pb.{maker}(" in text or f"@pb.{maker}" in text
