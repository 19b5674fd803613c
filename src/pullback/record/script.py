"""Running a script as `python script.py` would, and saying in one sentence how it ended."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.machinery
import io
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from types import ModuleType

SUFFIXES = importlib.machinery.all_suffixes()


@contextlib.contextmanager
def beside(folder: str, before: set[str]) -> Iterator[None]:
    """Put a folder first on the path, as Python does for what it runs.

    A module of ours may have the name of one in the folder: the program gets its own, and we keep ours.
    `before` are the modules that Python itself had imported by then.
    """
    hidden = {name: sys.modules.pop(name) for name in _shadowed(folder, before)}
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        for name, module in hidden.items():
            sys.modules.setdefault(name, module)


def _shadowed(folder: str, before: set[str]) -> list[str]:
    try:
        there = set(os.listdir(folder))
    except OSError:
        return []
    roots = {name.partition(".")[0] for name in sys.modules} - before - {"pullback", "__main__"}
    own = {root for root in roots if root in there or any(f"{root}{end}" in there for end in SUFFIXES)}
    inside = os.path.join(os.path.abspath(folder), "")
    return [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in own and not str(getattr(module, "__file__", "")).startswith(inside)
    ]


def run_script(path: str, arguments: list[str], *, name: str = "__main__", before: set[str]) -> str:
    """Run a script and say in one sentence how it ended, if not well."""
    if getattr(sys.flags, "safe_path", False):  # there `python script.py` leaves the path alone, too
        return _run(path, arguments, name)
    with beside(os.path.dirname(path), before):
        return _run(path, arguments, name)


def _run(path: str, arguments: list[str], name: str) -> str:
    sys.argv = [path, *arguments]
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
        with contextlib.suppress(Exception):  # the script may have replaced the stream
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
    with contextlib.suppress(Exception):  # the script may have replaced the stream
        print("Traceback (most recent call last):", file=sys.stderr)
        sys.stderr.writelines(traceback.format_list(kept))
        sys.stderr.writelines(traceback.format_exception_only(type(error), error))
        sys.stderr.flush()
    at = next((f for f in reversed(kept) if not path or f.filename == path), None)
    lines = str(error).strip().splitlines()
    text = f": {lines[0][:200]}" if lines else ""
    return f"{type(error).__name__}{text}" + (f" ({os.path.basename(at.filename)}:{at.lineno})" if at else "")
