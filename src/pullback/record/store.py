"""Samples on disk: what a crash leaves behind.

A sample is written when it is kept. One that cannot be written is still counted: its loss can be told.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from pullback.record.sample import Location, Recorded, Sample

MOST_BYTES = 2**28  # of one sample
Places: TypeAlias = "dict[int, set[int]]"
SUFFIX, USED = ".sample", ".used"


def write(folder: str, number: int, rule: Recorded, sample: Sample) -> None:
    """Write one sample."""
    size = sum(leaf.nbytes for leaf in sample.leaves if isinstance(leaf, np.ndarray))
    try:
        alone = replace(sample, function=None, held={})  # a function is built again from its source
        data = pickle.dumps((rule.location, alone if size <= MOST_BYTES else None))
    except Exception:  # a static may be anything
        data = pickle.dumps((rule.location, None))
    Path(folder, f"{number:09d}{SUFFIX}").write_bytes(data)


def write_used(folder: str, rule: Recorded) -> None:
    """Write which outputs of a rule were differentiated so far, and by which tensors."""
    known = (rule.location, (rule.used, rule.moved))
    Path(folder, f"{rule.key}{USED}").write_bytes(pickle.dumps(known))


def read_used(folder: str) -> dict[Location, tuple[Places, Places]]:
    """Read which outputs were differentiated, and by which tensors, by rule."""
    found = {}
    for name in os.listdir(folder):
        if name.endswith(USED):
            with contextlib.suppress(Exception):  # one half written says nothing
                location, used = pickle.loads(Path(folder, name).read_bytes())
                found[location] = used
    return found


def read(folder: str) -> tuple[list[tuple[Location, Sample]], int]:
    """Read the samples back, and count those that are lost."""
    kept, lost = [], 0
    for name in names(folder):
        try:
            location, sample = pickle.loads(Path(folder, name).read_bytes())
        except Exception:  # half written, or of a class that is gone
            sample = None
        if sample is None:
            lost += 1
        else:
            kept.append((location, sample))
    return kept, lost


def names(folder: str) -> list[str]:
    """List the files, oldest first."""
    return sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
