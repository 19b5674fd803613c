"""One right rule, written once, is right on every host; `test_names.py` looks at the wrong ones."""

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
@pytest.mark.parametrize("name", neutral.RIGHT)
def test_a_right_rule_is_right_on_every_host(name, host):
    function, at = neutral.RIGHT[name]
    report = check(function, *arguments(at, host), seed=2, xla=False, export=False)
    assert report.verdict == "right", [f.sentence for f in report.findings]
