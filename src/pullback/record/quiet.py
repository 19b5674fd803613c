"""Keeping still what the frameworks log while rules are checked, and while modules are imported for it.

What a rule or a module itself writes is passed on.

The checker compiles, retraces and fails on purpose, hundreds of times. Their C++ writes to the standard error
stream past Python, so the streams are turned into files for that while, and gone through afterwards.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator

from pullback.record.frameworks import FRAMEWORKS

# 2026-01-31 12:00:00.123456: I tensorflow/… · I0000 00:00:1769860800.123456 … · W0131 12:00:00.123456 …
# and what goes with them: the head of a log that nobody has opened, the second line on the CPU's instructions
LOGGED = re.compile(
    rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: )?[IWEF](\d{4} [\d:.]+\s| (tensorflow|external)/)"
    rb"|WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR"
    rb"|To enable the following instructions: [\w ,.-]*rebuild TensorFlow"
)
# A script may replace these.
_dup, _dup2, _close, _write = os.dup, os.dup2, os.close, os.write


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back what is logged in a block, and what a rule writes at every one of its calls but the first."""
    names = {name for framework in FRAMEWORKS.values() for name in framework.loggers}
    loggers = [logging.getLogger(name) for name in names if name.partition(".")[0] in sys.modules]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with held(1), held(2):
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


@contextlib.contextmanager
def held(stream: int) -> Iterator[None]:
    """Turn a stream into a file for the time of a block; then pass its lines on, each of them once."""
    flush()
    with contextlib.ExitStack() as stack:
        try:
            kept = stack.enter_context(tempfile.TemporaryFile())
            before = _dup(stream)
            _dup2(kept.fileno(), stream)
        except Exception:  # the script may have closed the stream, or replaced `tempfile`
            yield
            return
        try:
            yield
        finally:
            flush()
            _dup2(before, stream)
            _close(before)
            with contextlib.suppress(OSError):
                kept.seek(0)
                for line in dict.fromkeys(kept):
                    if not LOGGED.match(line):
                        _write(stream, line)


def flush() -> None:
    """Write out what the program has printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the script may have closed or replaced it
            stream.flush()
