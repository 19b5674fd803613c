"""A rule whose arguments are structures is judged by the same reading of its `grad` as a host's."""

import dataclasses
import enum
from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest
import tensorflow as tf
import torch

import pullback as pb

HOSTS = {"tensorflow": tf.constant, "jax": jnp.asarray, "torch": torch.tensor}
PROBES = ("contract", "derivative", "used")


def in_tuple(factor):
    @pb.custom_gradient
    def product(a, b):
        return a * b[0], lambda dy: (dy * b[0], (factor * dy * a,))

    return product, lambda a, b: (a, (b,))


def in_list(factor):
    @pb.custom_gradient
    def product(a, b):
        return a * b[0], lambda dy: (dy * b[0], [factor * dy * a])

    return product, lambda a, b: (a, [b])


def in_dict(factor):
    @pb.custom_gradient
    def product(a, b):
        return a * b["b"], lambda dy: {"a": dy * b["b"], "b": {"b": factor * dy * a}}

    return product, lambda a, b: (a, {"b": b})


def alone(factor):
    @pb.custom_gradient
    def product(both):
        return both["a"] * both["b"], lambda dy: {"a": dy * both["b"], "b": factor * dy * both["a"]}

    return product, lambda a, b: ({"a": a, "b": b},)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "wrong")])
@pytest.mark.parametrize("make", [in_tuple, in_list, in_dict, alone])
@pytest.mark.parametrize("host", HOSTS)
def test_structured_arguments(host, make, factor, verdict):
    product, arguments = make(factor)
    a, b = HOSTS[host]([0.3, 1.2]), HOSTS[host]([0.7, -0.4])
    assert pb.check(product, *arguments(a, b), seed=0, probes=PROBES, order=1).verdict == verdict


class Named(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Registered:
    a: Any
    b: Any


torch.export.register_dataclass(Registered)


@pb.custom_gradient
def wrong_product(pair):
    return pair.a * pair.b, lambda dy: type(pair)(dy * pair.b, 3 * dy * pair.a)


@pytest.mark.parametrize("kind", [Named, Registered])
def test_what_a_failure_prints_imports_the_types_of_the_arguments(kind):
    pair = kind(torch.tensor([0.3, 1.2]), torch.tensor([0.7, -0.4]))
    report = pb.check(wrong_product, pair, seed=0, probes=PROBES, order=1)
    shown = []
    exec(report.failures[0].reproducer, {"print": shown.append})
    assert "measured" in shown[-1]


class Mode(enum.Enum):
    TWICE = 2


def twice(x):
    return 2 * x


@pb.custom_gradient
def wrong_with_statics(x, mode, function, device):
    return function(x), lambda dy: 3 * dy


def test_what_a_failure_prints_writes_options_as_code():
    given = (torch.tensor([0.3, 1.2]), Mode.TWICE, twice, torch.device("cpu"))
    report = pb.check(wrong_with_statics, *given, seed=0, probes=PROBES, order=1)
    shown = []
    exec(report.failures[0].reproducer, {"print": shown.append})
    assert "measured 2, claimed 3" in shown[-1]
