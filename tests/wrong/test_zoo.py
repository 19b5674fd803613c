"""Every wrong rule is caught and named, and no right rule is called wrong."""

import pytest
from zoo import discover

from pullback.checker import check

WRONG, RIGHT = discover()


# The longest one first: in the end, neither of two processes waits for the other.
def test_most_bugs_are_found_from_harmless_inputs():
    cases = [c for c in WRONG.values() if c.harmless is not None]
    missed = [
        c.name
        for c in cases
        if check(c.function, *c.harmless, seed=3, xla=False, export=False).verdict != "wrong"
    ]
    assert len(missed) <= 0.2 * len(cases), missed


@pytest.mark.parametrize("case", list(WRONG.values()), ids=list(WRONG))
def test_a_wrong_rule_is_caught_and_named(case):
    report = check(case.function, *case.at, seed=1, xla=False, export=False)
    assert report.verdict == "wrong"
    assert case.causes & set(report.causes) or (not case.causes and not report.causes), (
        report.causes,
        [f.sentence for f in report.failures],
    )


@pytest.mark.parametrize("case", list(RIGHT.values()), ids=list(RIGHT))
def test_a_right_rule_is_not_called_wrong(case):
    report = check(case.function, *case.at, seed=2, xla=False, export=False)
    assert report.verdict != "wrong", [f.sentence for f in report.failures]
