"""The memory of one step: of JAX what its compiler says it needs beside arguments and results, elsewhere the
growth of the peak of resident memory, in a fresh process that has run the same step at a small size before.

A script hands over how its steps are made, and calls `main` first: in the fresh process that is the script
once more, with the arm to measure behind the word `peak`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Step = Callable[[], object]


@dataclass(frozen=True)
class Arms:
    """Hold how a step is made, by framework, and at which sizes it is measured."""

    tensorflow: Callable[[str, str, Any], Step]  # of a mode, a way and sizes
    torch: Callable[[str, str, Any], Step]
    jax: Callable[[str, Any], tuple[Any, Any]]  # of a way and sizes: a compiled program and its operands
    small: Any
    large: Any

    def main(self) -> None:
        """Measure the arm that the command line names, and leave; go on if it names none."""
        if sys.argv[1:2] == ["peak"]:
            self.step(*sys.argv[2:5], self.small)()  # set up what any step needs
            print(grown(self.step(*sys.argv[2:5], self.large)))
            sys.exit()

    def step(self, framework: str, mode: str, way: str, sizes: Any) -> Step:
        """Make a step."""
        if framework != "jax":
            return getattr(self, framework)(mode, way, sizes)
        import jax

        program, operands = self.jax(way, sizes)
        return lambda: jax.block_until_ready(program(*operands))

    def memory(self, framework: str, mode: str, way: str) -> float:
        """Give the MiB that one step needs."""
        if framework == "jax":
            return self.jax(way, self.large)[0].memory_analysis().temp_size_in_bytes / 2**20
        return peak(framework, mode, way)


def peak(framework: str, mode: str, way: str) -> float:
    """Give the MiB that one step of an arm of this script needs, by a process of its own."""
    command = [sys.executable, sys.argv[0], "peak", framework, mode, way]
    # memory that is freed goes back at once: what an allocator keeps for later is not what a step needs
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "262144"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout.split()[-1]) / 2**20


def grown(step: Step) -> int:
    """Tell how far a call raises the peak of resident memory: Linux forgets its highest mark first."""
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")
    before = _status("VmRSS")
    kept = step()
    raised = _status("VmHWM") - before
    del kept
    return raised


def _status(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))
