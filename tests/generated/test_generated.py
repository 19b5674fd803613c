"""Of generated rules with a known truth none is called wrong in error, and none that shows is missed.

Forty a host; `nox -s generated` runs two thousand.
"""

import pytest
from generator import generated
from hosts import HOSTS, mistake
from wider import wider

COUNT = 40


@pytest.mark.parametrize("made", [generated, wider])
def test_the_generator_makes_both_kinds_of_rules(made):
    rules = [made(seed) for seed in range(200)]
    wrong = [rule for rule in rules if not rule.right]
    assert 60 < len(wrong) < 140
    assert sum(rule.shows for rule in wrong) > 0.6 * len(wrong)
    assert not any(rule.shows for rule in rules if rule.right)


@pytest.mark.parametrize("host", HOSTS)
def test_nobody_is_accused_in_error_and_nothing_is_missed(host):
    assert not [said for said in (mistake(seed, host) for seed in range(COUNT)) if said]
