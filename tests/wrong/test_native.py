"""Rules that never heard of pullback: every wrong one is caught and named, no right one is called wrong."""

import native_jax
import native_torch
import pytest

from pullback.checker import check

ZOOS = {"jax": native_jax.zoo, "torch": native_torch.zoo}
WRONG = [(f"{host}: {name}", e) for host, zoo in ZOOS.items() for name, e in zoo.wrong_ones.items()]
RIGHT = [(f"{host}: {name}", e) for host, zoo in ZOOS.items() for name, e in zoo.right_ones.items()]


@pytest.mark.parametrize("entry", [e for _, e in WRONG], ids=[name for name, _ in WRONG])
def test_a_wrong_rule_is_caught_and_named(entry):
    report = check(entry.function, *entry.at, seed=1, xla=False, export=False)
    assert report.verdict == "wrong"
    assert entry.causes & set(report.causes), (report.causes, [f.sentence for f in report.failures])


@pytest.mark.parametrize("entry", [e for _, e in RIGHT], ids=[name for name, _ in RIGHT])
def test_a_right_rule_is_right(entry):
    report = check(entry.function, *entry.at, seed=2, xla=False, export=False)
    assert report.verdict == "right", [f.sentence for f in report.findings]
