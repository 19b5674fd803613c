"""Where a chain of steps is cut so that few of its states are kept: the binomial schedule.

With s states kept, the first among them, and every step run at most r times before its gradient, a chain of
C(s + r, s) steps can be gone back through; no schedule does more (Griewank, 1992). A chain of n steps is cut
behind its first m: the state there is kept while the rest, with one state less to keep, is gone back through.

    C(s+r−1, s) < n ≤ C(s+r, s)    m between max(C(s+r−2, s), n − C(s+r−1, s−1))
                                   and min(C(s+r−1, s), n − C(s+r−2, s−1))

After A. Griewank and A. Walther, Algorithm 799: revolve, 2000.
"""

from __future__ import annotations

from math import comb, isqrt
from typing import Union

Cut = Union[int, "tuple[Cut, Cut]"]  # a run of steps, or one that is run again before another


def cut(length: int, slots: int) -> Cut:
    """Cut a chain so that as few steps as possible are run again; runs within the slots stay whole."""
    if length <= slots + 2:
        return length
    s, r = slots + 1, 1
    while comb(s + r, s) < length:
        r += 1
    m = min(comb(s + r - 1, s), length - comb(s + r - 2, s - 1))
    return cut(m, slots), cut(length - m, slots - 1) if slots else length - m


def runs(tree: Cut) -> int:
    """Count the steps that a schedule runs, beside those of the gradients."""
    if isinstance(tree, int):
        return max(tree - 1, 0)
    first, rest = tree
    return sum(sizes(first)) + runs(first) + runs(rest)


def sizes(tree: Cut) -> list[int]:
    """List the lengths of the runs of steps, in order."""
    return [tree] if isinstance(tree, int) else [*sizes(tree[0]), *sizes(tree[1])]


def side(length: int) -> int:
    """Give the length of the segments where states are kept between segments, and inside one of them."""
    return max(isqrt(length), 1)
