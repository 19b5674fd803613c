"""The memory of one step: of JAX what its compiler says it needs beside arguments and results, elsewhere the
growth of the peak of resident memory, in a fresh process that has run the same step at a small size before.

A script hands over how its steps are made, `make(framework, mode, way, sizes)`, and calls `main` first: in
the fresh process that is the script once more, with the arm to measure behind the word `peak`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

Make = Callable[[str, str, str, Any], Callable[[], object]]


def main(make: Make, small: Any, large: Any) -> None:
    """Measure the arm that the command line names, and leave; go on if it names none."""
    if sys.argv[1:2] == ["peak"]:
        print(_grown(*(lambda sizes=sizes: make(*sys.argv[2:5], sizes) for sizes in (small, large))))
        sys.exit()


def peak(framework: str, mode: str, way: str) -> float:
    """Give the MiB that one step of an arm of this script needs, by a process of its own."""
    command = [sys.executable, sys.argv[0], "peak", framework, mode, way]
    # memory that is freed goes back at once: what an allocator keeps for later is not what a step needs
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "262144"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout.split()[-1]) / 2**20


def temporary(compiled: Any) -> float:
    """Give the MiB that a compiled program of JAX needs."""
    return compiled.memory_analysis().temp_size_in_bytes / 2**20


def _grown(small: Callable[[], Any], large: Callable[[], Any]) -> int:
    """Tell how far one step raises the peak of resident memory."""
    small()()  # set up what any step needs
    step = large()
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")
    before = _status("VmRSS")
    kept = step()
    grown = _status("VmHWM") - before
    del kept
    return grown


def _status(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))
