"""How much is computed at a time: as many logits as a cache likes, and no fewer than pay off."""

from __future__ import annotations

import numbers
from typing import Any

from pullback.errors import OptionError

# logits at a time: 16 MiB of float32 stay near a processor; a GPU needs large products
NEAR, FAR = 2**21, 2**26
LEAST, STEP = 128, 128


def chunk_of(name: str, chunk: Any, across: int | None, along: int | None, *, near: bool) -> int:
    """Give the length of a chunk: that of the user, or one with few logits for so many `across` it."""
    if chunk is not None:
        if not isinstance(chunk, numbers.Integral) or isinstance(chunk, bool) or chunk < 1:
            raise OptionError.about(
                name, found=f"chunk={chunk!r}", expected="a whole number of at least 1", fix="chunk=1024"
            )
        return int(chunk)
    wanted = max(LEAST, (NEAR if near else FAR) // max(across or 1024, 1) // STEP * STEP)
    return wanted if along is None else max(1, min(wanted, along))
