"""How generated rules are checked on a host, and held against what is known of them."""

import jax.numpy as jnp
import tensorflow as tf
import torch
from generator import generated

from pullback import tree
from pullback.checker import check

HOSTS = {"TensorFlow": tf.constant, "JAX": jnp.asarray, "PyTorch": torch.as_tensor}
QUICK = {"xla": False, "export": False}


def judged(seed, host):
    """Check one generated rule; give the rule and its report."""
    rule = generated(seed)
    leaves, structure = tree.flatten(list(rule.args))
    args = tree.unflatten(structure, [HOSTS[host](leaf) for leaf in leaves])
    return rule, check(rule.function, *args, seed=seed, **QUICK, **rule.kwargs)


def mistake(seed, host):
    """Say what the checker got wrong about one generated rule, or nothing."""
    rule, report = judged(seed, host)
    if rule.right and report.verdict == "wrong":
        return f"{seed}: {rule.made}: a false alarm: {[f.sentence for f in report.failures]}"
    if not rule.right and rule.shows and report.verdict != "wrong":
        return f"{seed}: {rule.made}: missed, {report.verdict}"
    return ""
