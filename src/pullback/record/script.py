"""Running a script as `python script.py` would, until it ends or is told to stop.

A stop comes from outside the script's code, at any moment, and again until it is heard: a script may catch
it.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType, ModuleType

AGAIN = 0.5  # seconds between two attempts to stop


class Stop(BaseException):
    """The recording is over. No Exception: a script's `except Exception` must not swallow it."""


class Clock:
    """Stop the main thread after some seconds, or as soon as told."""

    def __init__(self) -> None:
        self.running = False
        self.rang = False
        self.available = hasattr(signal, "setitimer")

    def ring(self, after: float = 1e-3) -> None:
        """Ask for a stop, and ask again until it is heard."""
        if self.available:
            signal.setitimer(signal.ITIMER_REAL, after, AGAIN)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.running:
            self.rang = True
            raise Stop

    @contextlib.contextmanager
    def watching(self, seconds: float | None) -> Iterator[None]:
        """Let a block be stopped; the stop ends here."""
        self.running = True
        before = signal.signal(signal.SIGALRM, self._heard) if self.available else None
        try:
            if seconds is not None:
                self.ring(max(seconds, 1e-3))
            yield
        except Stop:
            pass
        finally:
            self.running = False
            if self.available:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)


def run_script(path: str, arguments: list[str], *, name: str = "__main__") -> str:
    """Run a script and say in one sentence how it ended, if not well."""
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(path)
    shown = os.path.basename(path)
    # The module stays: what the script defined is checked after it has ended.
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(__file__=path, __builtins__=builtins, __spec__=None, __cached__=None)
    try:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, vars(module))
        _joined()
    except SystemExit as end:
        if end.code is None or end.code == 0:
            return ""
        if isinstance(end.code, int):
            hint = "; it may need arguments: put them after --" if end.code == 2 and not arguments else ""
            return f"{shown} ended with exit status {end.code}{hint}"
        print(end.code, file=sys.stderr)
        return f"{shown} ended with: {str(end.code).splitlines()[0][:200]}"
    except KeyboardInterrupt:
        return f"{shown} was interrupted"
    except Exception as error:  # a script may fail in any way it likes
        return f"{shown} raised {told(error, path)}"
    return ""


def _joined() -> None:
    """Wait for the script's threads, as Python does at its end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def told(error: BaseException, path: str = "") -> str:
    """Say what was raised and where, and print the traceback without our own frames."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = os.path.dirname(os.path.dirname(__file__)) + os.sep
    kept = [f for f in frames if not f.filename.startswith((inside, "<frozen"))]
    print("Traceback (most recent call last):", file=sys.stderr)
    sys.stderr.writelines(traceback.format_list(kept))
    sys.stderr.writelines(traceback.format_exception_only(type(error), error))
    sys.stderr.flush()
    at = next((f for f in reversed(kept) if not path or f.filename == path), None)
    lines = str(error).strip().splitlines()
    text = f": {lines[0][:200]}" if lines else ""
    return f"{type(error).__name__}{text}" + (f" ({os.path.basename(at.filename)}:{at.lineno})" if at else "")
