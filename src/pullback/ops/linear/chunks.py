"""How much is computed at a time: as many logits as a cache likes, and no fewer than pay off.

A processor is fastest while a chunk of classes stays near it: 8 MiB of float32. A GPU needs large products:
256 MiB. With chunks of tokens the gradient of the matrix is read and written once a chunk: they are larger,
near a processor what the host says (`Kernels.HELD`), and 2048 tokens on a GPU.
"""

from __future__ import annotations

import numbers
from typing import Any

from pullback.errors import OptionError

NEAR, FAR, TOKENS = 2**21, 2**26, 2048
STEP = 128  # the least, and what longer ones are multiples of
PIECES = 16  # a program that writes out each of them stays short


def classes_of(name: str, chunk: Any, tokens: int | None, classes: int | None, *, near: bool) -> int:
    """Give how many classes are looked at together, for so many tokens."""
    return _chunk(name, chunk, (NEAR if near else FAR) // max(tokens or 1024, 1), classes)


def queries_of(name: str, chunk: Any, keys: int, queries: int, *, near: bool) -> tuple[int, int]:
    """Give how many queries are looked at together, with so many keys, and how many heads of keys.

    Products of one head with many queries are faster than those of many heads with few.
    """
    size = classes_of(name, chunk, keys, queries, near=near)
    return size, max(1, (NEAR if near else FAR) // max(size * keys, 1))


def tokens_of(name: str, chunk: Any, classes: int | None, tokens: int | None, *, held: int | None) -> int:
    """Give how many tokens are looked at together, with so many classes; `held` is for a processor."""
    return _chunk(name, chunk, TOKENS if held is None else held // max(classes or 1024, 1), tokens)


def piece_of(tokens: int, classes: int) -> int:
    """Give how many classes are summed up together, for so many tokens, where a sum lies beside its terms."""
    wanted = max(NEAR // max(tokens, 1), -(-classes // PIECES))
    return max(STEP, -(-wanted // STEP) * STEP)


def _chunk(name: str, chunk: Any, wanted: int, length: int | None) -> int:
    if chunk is not None:
        if not isinstance(chunk, numbers.Integral) or isinstance(chunk, bool) or chunk < 1:
            raise OptionError.about(
                name, found=f"chunk={chunk!r}", expected="a whole number of at least 1", fix="chunk=1024"
            )
        return int(chunk)
    wanted = max(STEP, wanted // STEP * STEP)
    return wanted if length is None else max(1, min(wanted, length))
