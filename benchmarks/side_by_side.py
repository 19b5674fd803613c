"""Measuring several ways of doing the same thing in one run: interleaved rounds, the floor of each."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable


def floors(
    arms: dict[str, Callable[[], object]],
    *,
    calls: int,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Time each arm in turn, round after round; give the fastest round of each in microseconds a call."""
    best = dict.fromkeys(arms, float("inf"))
    for arm in arms.values():  # the first calls trace, compile and fill caches
        for _ in range(5):
            arm()
    order = list(arms.items())
    gc.disable()
    try:
        for _ in range(rounds):
            order.append(order.pop(0))  # what comes after the collection finds its caches cold
            for name, arm in order:
                for _ in range(calls):  # its data is near, and its threads are awake
                    arm()
                start = clock()
                for _ in range(calls):
                    arm()
                best[name] = min(best[name], (clock() - start) / calls * 1e6)
            gc.collect()
    finally:
        gc.enable()
    return best


def judge(results: list[tuple[str, float, float]]) -> None:
    """Print each measured ratio beside its bar, and leave with an error if one is missed."""
    missed = 0
    for name, measured, bar in results:
        holds = measured <= bar
        missed += not holds
        print(f"{'ok  ' if holds else 'MISS'}  {name:<52} {measured:6.3f}   bar {bar:g}")
    sys.exit(1 if missed else 0)
