"""Every ready rule is explained as a public function is, and its example runs."""

import doctest
import inspect
import re

import pytest

import pullback as pb

RULES = [getattr(pb.ops, name) for name in pb.ops.__all__]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_ready_rule_is_explained_and_its_example_runs(rule):
    text = inspect.getdoc(rule)
    assert re.match(r"[A-Z][a-z]+ .*\.$", text.splitlines()[0]), "one sentence that starts with a verb"
    assert "Do not use it" in text, "when not to use it"
    for parameter in inspect.signature(rule).parameters:
        assert re.search(rf"^ +{parameter}: ", text, re.MULTILINE), f"`{parameter}` is explained"
    (example,) = doctest.DocTestFinder().find(rule, rule.__name__, module=False, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
