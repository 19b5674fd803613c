"""One rule, as `stable.py` measures it: ours, the obvious formula, the frameworks' own, and a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """Hold what is compared, and how errors are counted: in the unit of which `bound` are allowed."""

    name: str
    ours: Callable[..., Any]
    obvious: Callable[..., Any]  # of a namespace, and of what `ours` takes
    own: Mapping[str, Callable[..., Any]]  # by framework
    points: Callable[[str], Sequence[np.ndarray]]  # of a dtype
    errors: Callable[[str, Sequence[np.ndarray]], list[np.ndarray]]  # of a dtype, and the value and gradients
    timed: Callable[[], Sequence[np.ndarray]]  # float32, of ordinary size; they are repeated to a large array
    bound: float
