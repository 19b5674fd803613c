"""One wrong rule, written once, gets the same cause on every host; one right rule is right on all of them."""

import jax.numpy as jnp
import neutral
import pytest
import tensorflow as tf
import torch

from pullback import tree
from pullback.checker import check

HOSTS = {"TensorFlow": tf.constant, "JAX": jnp.asarray, "PyTorch": torch.as_tensor}


def arguments(at, host):
    leaves, structure = tree.flatten(list(at))
    return tree.unflatten(structure, [HOSTS[host](leaf) for leaf in leaves])


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", neutral.WRONG)
def test_a_wrong_rule_gets_its_cause_on_every_host(name, host):
    function, at, cause = neutral.WRONG[name]
    report = check(function, *arguments(at, host), seed=1, xla=False, export=False)
    assert report.verdict == "wrong"
    assert cause in report.causes, [f.sentence for f in report.failures]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", neutral.RIGHT)
def test_a_right_rule_is_right_on_every_host(name, host):
    function, at = neutral.RIGHT[name]
    report = check(function, *arguments(at, host), seed=2, xla=False, export=False)
    assert report.verdict == "right", [f.sentence for f in report.findings]
