"""Bugs at one exact value are found from harmless inputs, because the function says where it switches."""

import exact_points
import pytest
from test_neutral import HOSTS, arguments

from pullback.checker import check

# What shows at a kink only is a choice; what is zero up to rounding beyond a value may stay unseen.
FOUND = 20 / 22
QUICK = {"xla": False, "export": False, "order": 1}


@pytest.mark.parametrize("host", HOSTS)
def test_bugs_at_one_exact_value_are_found(host):
    missed = [
        name
        for name, (function, at) in exact_points.WRONG.items()
        if check(function, *arguments(at, host), seed=3, **QUICK).verdict != "wrong"
    ]
    assert len(exact_points.WRONG) >= 22
    assert len(missed) <= (1 - FOUND) * len(exact_points.WRONG), missed


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", exact_points.RIGHT)
def test_a_switch_alone_makes_nobody_wrong(name, host):
    function, at = exact_points.RIGHT[name]
    report = check(function, *arguments(at, host), seed=3, **QUICK)
    assert report.verdict != "wrong", [f.sentence for f in report.failures]
