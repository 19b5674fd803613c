"""What a check may be told."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pullback.dtypes import DEMANDED

MEND = 10.0  # CPU seconds for the search of an edit, where one is asked for


@dataclass(frozen=True)
class Settings:
    """Hold the choices of one check."""

    seed: int = 0
    order: int = 2
    rtol: float | None = None
    probes: tuple[str, ...] | None = None
    own_points: bool = True
    xla: bool = True
    export: bool = True
    budget: float = 60.0  # CPU seconds for one check
    pictures: bool = False  # whether to add what a page shows
    mend: float = 0.0  # CPU seconds for the search of an edit; 0: none is searched
    folder: str = ""  # from which files are named in a diff; the working folder where nothing is said
    # The unit roundoff of the dtype the user ships, when the check itself runs in a finer one.
    shipped: float = 2.0**-53
    confidence: float = field(default=5.0)

    def rng(self, *salt: int) -> np.random.Generator:
        """Give a generator of its own for one question, so that adding a probe moves no other's numbers."""
        return np.random.default_rng([self.seed, *salt])

    def demanded(self, unit: float) -> float:
        """Give the resolution that a pass must reach."""
        return self.rtol if self.rtol is not None else DEMANDED.get(unit, 1e-6)
