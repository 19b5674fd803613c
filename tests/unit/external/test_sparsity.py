"""Colours: no two columns of one colour share a row, and scipy needs no fewer for a band."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize._numdiff import group_columns

from pullback.wrapping.sparsity import pattern_of

PATTERNS = {
    "diagonal": scipy.sparse.eye(50),
    "tridiagonal": scipy.sparse.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(50, 50)),
    "wide band": scipy.sparse.diags([1.0] * 7, range(-3, 4), shape=(60, 60)),
    "random": scipy.sparse.random(40, 70, 0.05, random_state=3),
    "full": scipy.sparse.csr_matrix(np.ones((4, 6))),
    "an empty column": scipy.sparse.csr_matrix(np.array([[1, 0, 1], [0, 0, 1]])),
    "empty": scipy.sparse.csr_matrix((3, 5)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_columns_of_one_colour_share_no_row(name):
    matrix = PATTERNS[name]
    pattern = pattern_of(matrix, *matrix.shape, where="f")
    dense = matrix.toarray() != 0
    for colour in range(pattern.count):
        assert dense[:, pattern.colours == colour].sum(axis=1).max(initial=0) <= 1
    assert len(pattern.colours) == matrix.shape[1]


@pytest.mark.parametrize("name", ["diagonal", "tridiagonal", "wide band", "full"])
def test_there_are_no_more_colours_than_scipy_needs(name):
    matrix = PATTERNS[name]
    theirs = group_columns(matrix, order=np.arange(matrix.shape[1]))
    assert pattern_of(matrix, *matrix.shape, where="f").count == theirs.max() + 1


def test_a_stored_zero_is_no_dependence():
    matrix = scipy.sparse.csr_matrix((np.array([1.0, 0.0]), ([0, 0], [0, 1])), shape=(1, 2))
    assert len(pattern_of(matrix, 1, 2, where="f").rows) == 1
