"""One rule, as `stable.py` measures it: ours, the obvious formula, the frameworks' own, and a judge."""

from __future__ import annotations

import functools
import importlib
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
    own: Mapping[str, Callable[..., Any]]  # by framework, or by a library of one
    points: Callable[[str], Sequence[np.ndarray]]  # of a dtype
    errors: Callable[[str, Sequence[np.ndarray]], list[np.ndarray]]  # of a dtype, and the value and gradients
    timed: Callable[[], Sequence[np.ndarray]]  # large arrays of float32, of ordinary numbers
    bound: float
    cotangent: Callable[[str], np.ndarray] | None = None  # of a dtype; None: ones
    page: str = "ops.md"  # of the documentation, where its tables stand


def of(name: str) -> Callable[..., Any]:
    """Look up a function by its path when it is called: a framework is imported by who asks for it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        module, *path = name.split(".")
        return functools.reduce(getattr, path, importlib.import_module(module))(*args, **kwargs)

    return call
