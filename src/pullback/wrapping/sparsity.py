"""Declared sparsity: which inputs an output depends on, and columns that can be moved together.

Two columns of a Jacobian without a row in common can be measured by one difference (Curtis, Powell and
Reid). Each column takes the first colour that no column with a row in common has; a banded Jacobian of any
size thus needs as many colours as its band is wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import OptionError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pattern:
    """Hold the places that may be nonzero, and the colour of each column."""

    rows: Array
    columns: Array
    colours: Array

    @property
    def count(self) -> int:
        """The number of colours: differences that the whole Jacobian needs."""
        return int(self.colours.max(initial=-1)) + 1


def pattern_of(sparsity: Any, rows: int, columns: int, where: str) -> Pattern:
    """Read a declared sparsity, a matrix of SciPy or of NumPy, and colour its columns."""
    if hasattr(sparsity, "tocoo"):
        matrix = sparsity.tocoo()
        shape, i, j = tuple(matrix.shape), np.asarray(matrix.row), np.asarray(matrix.col)
        held = np.asarray(matrix.data) != 0
        i, j = i[held], j[held]
    else:
        array = np.asarray(sparsity)
        shape = array.shape
        i, j = np.nonzero(array) if array.ndim == 2 else (np.zeros(0, int), np.zeros(0, int))
    if shape != (rows, columns):
        raise OptionError.about(
            where,
            found=f"sparsity= has shape {shape}",
            expected=f"({rows}, {columns}): a row per output element, a column per element of the arguments",
            fix="flatten outputs and arguments in their order, or give a function of the arguments' specs",
        )
    order = np.lexsort((i, j))
    i, j = i[order].astype(np.int64), j[order].astype(np.int64)
    return Pattern(i, j, colour(i, j, rows, columns))


def colour(i: Array, j: Array, rows: int, columns: int) -> Array:
    """Give each column a colour that no column with a row in common has."""
    by_row = np.argsort(i, kind="stable")
    row_start = np.searchsorted(i[by_row], np.arange(rows + 1)).tolist()
    row_columns = j[by_row].tolist()
    column_start = np.searchsorted(j, np.arange(columns + 1)).tolist()
    column_rows = i.tolist()
    colours = [-1] * columns
    for column in range(columns):
        taken = {
            colours[other]
            for row in column_rows[column_start[column] : column_start[column + 1]]
            for other in row_columns[row_start[row] : row_start[row + 1]]
        }
        chosen = 0
        while chosen in taken:
            chosen += 1
        colours[column] = chosen
    return np.asarray(colours, dtype=np.int64)
