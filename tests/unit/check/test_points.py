"""Own points keep what an example promises, and go where examples seldom look."""

import numpy as np
import pytest

from pullback.checker.points import UNSYMMETRIC, own_points
from pullback.checker.promises import promise
from pullback.checker.shrink import candidates


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (np.array([0.0, 1.0, 1.0]), "mask"),
        (np.array([[0.2, 0.8], [0.5, 0.5]]), "simplex"),
        (np.array([[0.6, 0.8], [1.0, 0.0]]), "unit length"),
        (np.array([[2.0, 1.0], [1.0, 3.0]]), "positive definite"),
        (np.array([[2.0, 0.0], [1.0, 3.0]]), "triangular"),
        (np.array([[2.0, 1.0], [1.0, -3.0]]), "symmetric"),
        (np.zeros((2, 2)), "symmetric"),
        (np.eye(2), "positive definite"),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), "symmetric mask"),
        (np.array([0.3, -2.0]), "free"),
        (np.ones(3), "free"),
        (np.array([np.nan]), "fixed"),
    ],
)
def test_the_structure_of_an_example_is_seen(x, kind):
    assert promise(x) == kind


@pytest.mark.parametrize("given", [np.zeros((3, 3)), np.array([[1.0, 2j], [-2j, 3.0]]), 1.0 - np.eye(3)])
def test_points_of_a_symmetric_matrix_are_symmetric(given, subject_of):
    subject = subject_of(lambda x: x * x, lambda x, d: 2 * x * d, given)
    points = own_points(subject, np.random.default_rng(0))
    points = [p for p in points if p.label not in UNSYMMETRIC and not p.resized]
    assert len(points) > 20
    for point in points:
        for x in point.inputs:
            assert np.array_equal(x, x.conj().T)


def test_points_hold_zeros_ties_negatives_and_large_values(subject_of):
    subject = subject_of(np.sin, lambda x, d: d * np.cos(x), np.array([0.5, 1.5, 1.0, 0.7]))
    points = [p.inputs[0] for p in own_points(subject, np.random.default_rng(0))]
    assert any((x == 0).any() for x in points)
    assert any(len(np.unique(x)) < x.size for x in points)
    assert any((x < 0).any() for x in points)
    assert any((np.abs(x) > 50).any() for x in points)


def test_points_outside_the_domain_are_left_out(subject_of):
    def log(x):
        with np.errstate(all="ignore"):
            return np.log(x)

    subject = subject_of(log, lambda x, d: d / x, np.array([0.5, 1.5, 1.0, 0.7]))
    points = list(own_points(subject, np.random.default_rng(0)))
    assert points
    assert all((p.inputs[0] > 0).all() for p in points)


@pytest.mark.parametrize("pointed", [np.array([7, 0, 3]), np.array([-8, 0, 3]), np.array(7, "uint8")])
def test_what_an_integer_points_to_is_not_cut_away(pointed):
    smaller = [x.shape for x, _ in candidates((np.ones((32, 10)), pointed))]
    assert all(length >= 8 for shape in smaller for length in shape)
    assert (8, 8) in smaller


def test_what_is_as_long_as_an_integer_says_is_not_cut():
    smaller = [x.shape for x, _ in candidates((np.ones((32, 10)), np.array([10])))]
    assert {shape[1] for shape in smaller} == {10}
