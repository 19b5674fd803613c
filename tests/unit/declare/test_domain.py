"""A domain keeps a simulator physical: nothing outside is ever asked of it, and its edge is still tested."""

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb
from pullback.checker import Settings, check_subject
from pullback.declare import Declaration
from pullback.domain import Domain, folded, inside
from pullback.errors import OptionError
from pullback.view.subject import Subject

SEEN: list[float] = []


def cube(x):
    """Note where it is asked."""
    SEEN.extend([float(x.min()), float(x.max())])
    return x**3


def checked(domain, x, pullback=lambda x, d: d * 3 * x**2, seed=1, forward=cube):
    SEEN.clear()
    subject = Subject(
        name="cube",
        inputs=(x,),
        names=("x",),
        differentiable=(True,),
        forward=lambda inputs: (forward(inputs[0]),),
        pullback=lambda inputs, cotangents: (pullback(inputs[0], cotangents[0]),),
        is_rule=True,
        domain=Domain.of(domain),
    )
    return check_subject(subject, Settings(seed=seed, probes=("contract", "derivative", "linearity")))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "x",
    [
        np.array([0.25, 0.5, 0.7]),
        np.array([0.0, 0.5, 1.0]),  # on both edges
        np.array([0.0, 0.0, 0.4]),
        np.array([1e-9, 1 - 1e-9]),
    ],
)
def test_nothing_outside_is_asked_and_the_edge_is_decided(x, seed):
    report = checked((0.0, 1.0), x, seed=seed)
    assert min(SEEN) >= 0.0
    assert max(SEEN) <= 1.0
    assert report.verdict == "right"
    wrong = checked((0.0, 1.0), x, lambda x, d: d * (3 * x**2 + 0.5), seed=seed)
    assert max(SEEN) <= 1.0
    assert wrong.verdict == "wrong"


def test_the_resolution_at_an_edge_is_that_of_differences():
    assert checked((0.0, 1.0), np.array([0.0, 0.5, 1.0])).resolution < 1e-5


def test_own_points_fill_the_domain():
    checked((0.2, 0.3), np.array([0.25, 0.22]))
    assert (min(SEEN) < 0.205, max(SEEN) > 0.295) == (True, True)
    report = checked((0.2, 0.3), np.array([0.25, 0.22]), lambda x, d: d * 3 * x**2 * (x < 0.29))
    assert report.verdict == "wrong"


@pytest.mark.parametrize("x", [np.array([0.25, 0.5]), np.array([0.0, 0.3])])
def test_a_predicate_says_it_too(x):
    report = checked(lambda x: (x.min() >= 0) and (x.sum() <= 1), x)
    assert min(SEEN) >= 0
    assert report.verdict == "right"


def test_the_cause_is_named_inside():
    report = checked((0.0, 1.0), np.array([0.0, 0.5, 1.0]), lambda x, d: d * 6 * x**2)
    assert report.causes == ["constant-factor"]
    assert max(SEEN) <= 1.0


def test_a_point_that_is_alone_proves_no_identity():
    """The cube of zero is zero."""
    report = checked(lambda x: (x == 0).all(), np.zeros(3), lambda x, d: d * 0.5)
    assert "surrogate" not in report.causes


def test_arguments_outside_are_refused():
    with pytest.raises(OptionError, match="outside the domain"):
        checked((0.0, 1.0), np.array([0.5, 1.5]))
    with pytest.raises(OptionError, match="domain names `radius`, and the inputs are x"):
        checked({"radius": (0.0, 1.0)}, np.array([0.5]))


@pytest.mark.parametrize("given", [(1.0, 0.0), (0.0,), "x", {"x": "y"}, {}, {3: (0, 1)}, (0, True)])
def test_what_is_no_domain_is_refused(given):
    with pytest.raises(OptionError, match="domain"):
        pb.check(np.sin, torch.ones(2), domain=given)
    with pytest.raises(OptionError, match="domain"):
        pb.example(1.0, domain=given)


def test_a_draw_is_mirrored_into_the_bounds():
    limits = ((0.0, 1.0), (-np.inf, 0.0), (2.0, np.inf), (-np.inf, np.inf))
    x = np.linspace(-7, 7, 30)
    drawn = folded(limits, (x, x, x, x.astype(np.float32)))
    assert inside(limits, drawn)
    assert len(np.unique(drawn[0])) > 3


HOSTS = {
    "torch": (torch.log, torch.tensor([0.1, 0.5, 1.0])),
    "jax": (jnp.log, jnp.array([0.1, 0.5, 1.0])),
    "tensorflow": (tf.math.log, tf.constant([0.1, 0.5, 1.0])),
}


def test_it_is_a_keyword_of_check_example_and_declare(framework):
    log, x = HOSTS[framework]
    quick = {"seed": 1, "xla": False, "export": False, "order": 1}

    def f(x):
        return log(x)

    # single precision: 0.1 is a little more than a tenth
    assert pb.check(f, x, domain={"x": (0.1, 1.0)}, **quick).verdict == "right"
    with pytest.raises(OptionError, match=r"x in \[2, 3\]"):
        pb.check(f, x, domain={"x": (2, 3)}, **quick)
    marked = pb.example(x, domain=(2, 3))(lambda x: log(x))
    with pytest.raises(OptionError, match="outside the domain"):
        pb.check(marked, x, **quick)
    declared = pb.declare(lambda x: log(x), domain=(2, 3))
    with pytest.raises(OptionError, match="outside the domain"):
        pb.check(declared, x, **quick)


def test_what_is_said_above_counts():
    low, high = Domain.of((0, 1)), Domain.of((2, 3))
    said = Declaration(domain=high).over(Declaration(domain=low, order=1))
    assert said == Declaration(domain=high, order=1)
