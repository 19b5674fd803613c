"""A file that is written whole or not at all, whatever ends the program meanwhile.

The new text is written beside the file, made safe on the disk, and put in its place in one step. A file that
was there keeps its mode, and one behind a link stays behind it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile


def replace(path: str, data: bytes) -> None:
    """Put bytes in the place of a file, or make it; raise OSError where that cannot be done."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    handle, beside = tempfile.mkstemp(prefix=".pullback-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    except BaseException:  # an interrupt as well: nothing is left behind
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise
    _settle(folder)


def _mode(path: str) -> int:
    """Give the mode of a file, or the one that a new file gets."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _settle(folder: str) -> None:
    """Make the new name safe on the disk, where a folder can be."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
