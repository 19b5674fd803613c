"""Functions that other processes can import: each call leaves a mark in a folder."""

import os
import sys
import time
import uuid
from pathlib import Path

import numpy as np

import pullback as pb


def mark(folder: str, name: str) -> None:
    """Leave a mark: one file a call."""
    (Path(folder) / f"{name}-{uuid.uuid4().hex}").touch()


def marks(folder) -> list[str]:
    """List what the marks say."""
    return sorted(path.name.rsplit("-", 1)[0] for path in Path(folder).iterdir() if "-" in path.name)


@pb.external(output=lambda x: x, gradient="central")
def square(x, folder=""):
    """Square, in whatever process this is."""
    if folder:
        mark(folder, f"{float(np.ravel(x)[0]):g}")
    return x**2


@pb.external(output=lambda x: x)
def cube(x):
    return x**3


@cube.pullback
def _(dy, x):
    if os.getpid() == MAIN:
        raise RuntimeError("the pullback runs in the main process")
    return dy * 3 * x**2


MAIN = None  # the process that must not run the pullback


@pb.external(output=lambda x: x)
def fragile(x, folder):
    """Square; kill the process once, at the element that is 3."""
    if x == 3 and not os.path.exists(f"{folder}/dead"):
        Path(f"{folder}/dead").touch()
        time.sleep(0.1)
        os._exit(1)
    mark(folder, f"{float(x):g}")
    return x**2


@pb.external(output=lambda x: x)
def deadly(x):
    """Kill every process that comes near a 3."""
    if x == 3:
        os._exit(1)
    return x**2


@pb.external(output=lambda x: x)
def complaining(x):
    """Refuse a 3."""
    if x == 3:
        raise ValueError("three is not allowed")
    return x**2


class UnpicklableError(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


@pb.external(output=lambda x: x)
def strange(x):
    raise UnpicklableError("odd", "error")


@pb.external(output=lambda x: x)
def writing(x):
    x += 1
    return x


@pb.external(output=lambda x: x)
def slow(x):
    time.sleep(0.02)
    return x**2


@pb.external(output=lambda x: x)
def leaving(x):
    """End the program at a 3."""
    if np.any(x == 3):
        sys.exit("three is the end")
    return x**2
