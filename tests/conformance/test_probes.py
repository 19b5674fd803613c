"""Every probe of the checker, found, asks every rule on every host; no answer is "wrong".

The checker sees a rule through the host's own subject. One run, at the first example, answers all probes; the
other examples are for `test_agreement.py`.
"""

from __future__ import annotations

import functools

import known
import pytest
from conformance_cases import CASES, Case
from conformance_hosts import HOSTS

import pullback as pb
from pullback import tree
from pullback.checker.finding import Report
from pullback.checker.probe import probes

PROBES = list(probes())
FIRST = [name for name in CASES if name.endswith("-0")]
# Any derivative of it is an error, on purpose: there is nothing to measure.
UNCHECKED = {name for name in CASES if name.startswith("forbid_gradient")}


@functools.cache
def report(name: str, host: str) -> Report:
    case: Case = CASES[name]
    asked = HOSTS[host]
    tensors = iter(asked.only(case.flat(case.function(host)), case.arrays, case.moving).tensors)
    leaves, structure = tree.flatten([list(case.args), case.kwargs])
    is_array = [hasattr(leaf, "dtype") for leaf in leaves]
    filled = [next(tensors) if array else leaf for leaf, array in zip(leaves, is_array)]
    args, kwargs = tree.unflatten(structure, filled)
    function = case.function(host)
    if {"order", "seed"} & set(kwargs):
        raise AssertionError("a keyword of the rule is one of the checker's")
    return asked.checked(
        lambda: pb.check(function, *args, seed=1, own_points=False, xla=False, export=False, **kwargs)
    )


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", [name for name in FIRST if name not in UNCHECKED])
def test_no_probe_finds_a_rule_wrong(name, host):
    found = report(name, host)
    for probe in PROBES:
        bad = [f.sentence for f in found.findings if f.probe == probe and f.verdict == "wrong"]

        def test(bad=bad):
            assert not bad

        known.hold(host, name, f"probe {probe}", test)  # a question may have the name of a probe
    assert found.findings


@pytest.mark.parametrize("name", [name for name in FIRST if name not in UNCHECKED])
def test_the_verdict_is_the_same_on_every_host(name):
    verdicts = {host: report(name, host).verdict for host in HOSTS}
    assert len(set(verdicts.values())) == 1, verdicts
