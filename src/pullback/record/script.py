"""Running a script as `python script.py` would, and saying in one sentence how it ended."""

from __future__ import annotations

import builtins
import importlib
import io
import os
import sys
import threading
import traceback
from types import ModuleType


def run_script(path: str, arguments: list[str], *, name: str = "__main__") -> str:
    """Run a script and say in one sentence how it ended, if not well."""
    sys.argv = [path, *arguments]
    if not getattr(sys.flags, "safe_path", False):  # there `python script.py` leaves the path alone, too
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
    """Wait for the script's threads, as Python does at its end.

    The threads of an executor that nobody shut down wait for work until Python itself ends.
    """
    pools = sys.modules.get("concurrent.futures.thread")
    waiting = set(getattr(pools, "_threads_queues", ()))
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread not in waiting:
            thread.join()


def told(error: BaseException, path: str = "") -> str:
    """Say what was raised and where, and print the traceback without our own frames."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = os.path.dirname(os.path.dirname(__file__)) + os.sep
    machinery = (inside, "<frozen", os.path.dirname(importlib.__file__))
    kept = [f for f in frames if not f.filename.startswith(machinery)]
    print("Traceback (most recent call last):", file=sys.stderr)
    sys.stderr.writelines(traceback.format_list(kept))
    sys.stderr.writelines(traceback.format_exception_only(type(error), error))
    sys.stderr.flush()
    at = next((f for f in reversed(kept) if not path or f.filename == path), None)
    lines = str(error).strip().splitlines()
    text = f": {lines[0][:200]}" if lines else ""
    return f"{type(error).__name__}{text}" + (f" ({os.path.basename(at.filename)}:{at.lineno})" if at else "")
