"""A child as the operating system sees it: started, watched, and ended with all that it has started.

It imports nothing that lies in the working folder: a `json.py` there is the script's, not ours. It has a
process group of its own, so that whatever the script started ends with it. At a terminal it stays in the
group of the command: only that one may read from the keyboard. There its descendants are looked up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pullback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(pullback.__file__)))
# The folder that Python puts first for `-c` is taken out before anything is imported.
CODE = (
    "import sys; before = set(sys.modules); sys.path[:1] == [''] and sys.path.pop(0); "
    "sys.path.append(sys.argv[1]); from pullback.record.child import main; sys.path.pop(); main(before)"
)
GRACE = 1.0  # seconds between asking a process to end and ending it


@contextlib.contextmanager
def signals() -> Iterator[list[int]]:
    """Collect the signals that would end the command; it ends by itself, in order."""
    heard: list[int] = []
    before = {}

    def told(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # `nohup` says that a signal shall be ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, told)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def crashed(code: int) -> str:
    """Say which signal ended a process."""
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"crashed (signal {-code})"


class Process:
    """Hold one child."""

    def __init__(self, folder: str, *, silent: bool = False, streams: tuple[Any, Any] | None = None) -> None:
        self.apart = hasattr(os, "killpg") and not _at_terminal()
        out, err = (subprocess.DEVNULL,) * 2 if silent else streams or (None, None)
        command = [sys.executable, "-c", CODE, ROOT, folder]
        if not self.apart:
            self.child = subprocess.Popen(command, stdout=out, stderr=err)
        elif sys.version_info >= (3, 11):
            self.child = subprocess.Popen(command, stdout=out, stderr=err, process_group=0)
        else:
            self.child = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=os.setpgrp)
        self.pid = self.child.pid

    def poll(self) -> int | None:
        """Give the exit status once there is one."""
        return self.child.poll()

    def interrupt(self) -> None:
        """Pass an interrupt on, where the terminal has not done so."""
        if self.apart and self.child.poll() is None:
            _send(signal.SIGINT, [-self.pid])

    def end(self) -> None:
        """End the child and what it has started: asked first, then made to."""
        running = self.child.poll() is None
        if not running and not self.apart:
            return
        # Looked up while the child lives: a process that has lost its parent is not found.
        members = [-self.pid] if self.apart else [self.pid, *descendants(self.pid)]
        _send(signal.SIGTERM, members)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(GRACE if running else 0)
        _send(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM, members)
        self.child.wait()


def _send(number: int, members: Sequence[int]) -> None:
    """Send a signal to processes; a negative number is a group."""
    for pid in members:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def descendants(pid: int) -> list[int]:
    """List what a process has started, and what that has started; nothing where the system does not tell."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError, IndexError):
                children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        here = children.get(waiting.pop(), [])
        found += here
        waiting += here
    return found


def _stat(pid: int) -> list[bytes]:
    """Read what the system says of a process, behind its name."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def _at_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:
        return False


class Watch:
    """Measure how long a child has been at one thing: in CPU time, where the system tells."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.begin()

    def begin(self) -> None:
        """Start from zero."""
        self.wall, self.cpu = time.monotonic(), cpu_time(self.pid)

    def seconds(self) -> float:
        """Give CPU seconds, of which a thread has no more than the clock has; waiting counts a tenth."""
        wall = time.monotonic() - self.wall
        now = cpu_time(self.pid)
        cpu = wall if now is None or self.cpu is None else now - self.cpu
        return max(min(cpu, wall), wall / 10)


def cpu_time(pid: int) -> float | None:
    """Give the CPU time of another process, None where it is not told."""
    try:
        fields = _stat(pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
