"""The doctor: what is installed here, which hosts work, and what each of them can do.

Framework-free. Each framework is asked in a process of its own, so that one that is missing, old, broken or
crashing is an answer like any other.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from pullback import __version__
from pullback.doctor.known import KNOWN, combination
from pullback.hosts import SUPPORTED
from pullback.record.process import crashed

PATIENCE = 180.0  # seconds for one framework: the first import after an installation is slow
OTHERS = ("keras", "click", "rich", "pytest")
Status = Literal["works", "missing", "old", "broken"]


@dataclass(frozen=True)
class Found:
    """Hold the answer of one framework; `capabilities` are measured, not promised."""

    name: str
    status: Status
    needed: str
    version: str = ""
    path: str = ""
    reason: str = ""
    known: bool = False  # whether the tests were run with these versions
    capabilities: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """Hold everything that was found."""

    versions: dict[str, str]
    hosts: tuple[Found, ...]

    @property
    def exit_code(self) -> int:
        """Give 0 when at least one host works, 1 otherwise."""
        return 0 if any(host.status == "works" for host in self.hosts) else 1

    def dumps(self) -> str:
        """Write the diagnosis as JSON."""
        data = {"schema": 1, "versions": self.versions, "hosts": [asdict(host) for host in self.hosts]}
        return json.dumps(data, indent=2)


def diagnose() -> Diagnosis:
    """Ask every framework, all at once."""
    asked = {name: _ask(name) for name in SUPPORTED}
    return Diagnosis(versions(), tuple(_answer(name, process) for name, process in asked.items()))


def versions() -> dict[str, str]:
    """List what does not depend on a framework."""
    found = {
        "pullback": __version__,
        "Python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "NumPy": np.__version__,
    }
    for name in OTHERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _ask(name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pullback.doctor.measure", name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


def _answer(name: str, process: subprocess.Popen[bytes]) -> Found:
    needed = SUPPORTED[name].needed
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Found(name, "broken", needed, reason=f"it did not answer within {PATIENCE:g} s")
    # A framework may print what it likes; the last line is ours.
    lines = out.decode(errors="replace").splitlines()
    said: dict[str, Any] = {}
    if lines and lines[-1].startswith("{"):
        said = json.loads(lines[-1])
    if process.returncode == 0 and said:
        here = combination(name, said.get("version", ""), platform.python_version(), np.__version__)
        return Found(name, needed=needed, known=here in KNOWN, **said)
    last = (errors.decode(errors="replace").strip().splitlines() or [""])[-1]
    return Found(name, "broken", needed, reason=f"{_ended(process.returncode)}{f': {last}' if last else ''}")


def _ended(code: int) -> str:
    if code >= 0:
        return f"its import ended the process with exit status {code}"
    return f"its import {crashed(code)}"
