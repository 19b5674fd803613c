"""Measuring several ways of doing the same thing in one run: interleaved rounds, the floor of each."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


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


def tell(found: dict[str, Any]) -> None:
    """Hand what was measured in this process to `fastest_of_processes`."""
    print(json.dumps(found))


def fastest_of_processes(count: int, *command: str) -> dict[str, Any]:
    """Run a script in several processes, each of which tells what it measured; give the least of each number.

    Where the memory of a process comes to lie is chance, and an arm may be slow for the life of one.
    """
    found: Any = None
    for _ in range(count):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        told = json.loads(done.stdout.strip().splitlines()[-1])
        found = told if found is None else least(found, told)
    return found


def least(a: Any, b: Any) -> Any:
    """Give the lesser of each number of two structures."""
    if isinstance(a, dict):
        return {name: least(a[name], b[name]) for name in a}
    return [least(x, y) for x, y in zip(a, b)] if isinstance(a, list) else min(a, b)


def judge(results: list[tuple[str, float, float]]) -> None:
    """Print each measured ratio beside its bar, and leave with an error if one is missed."""
    missed = 0
    for name, measured, bar in results:
        holds = measured <= bar
        missed += not holds
        print(f"{'ok  ' if holds else 'MISS'}  {name:<52} {measured:6.3f}   bar {bar:g}")
    sys.exit(1 if missed else 0)
