"""One call of a user's function, wherever it runs: here, in a thread, in another process.

Two promises. What the user's code raises comes back as a value, a `Failure` with its traceback in words, so
that an exception of an executor is always the executor's own. And a decorated function can be sent to
another process although its name there means the decorated one: it travels as a reference that is unwrapped,
or by value where nobody could import it.
"""

from __future__ import annotations

import contextvars
import importlib
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import DefinitionError
from pullback.wrapping import buffers

Function = Callable[..., Any]
_HERE = os.path.dirname(os.path.abspath(__file__))


class Job(NamedTuple):
    """The arguments of one call, and what to name it in an error."""

    args: Any
    kwargs: dict[str, Any]
    label: str = ""


@dataclass
class Failure:
    """What a user's function raised."""

    kind: str
    text: str
    lines: str  # the traceback, from the user's first frame on
    error: BaseException | None
    timed_out: bool = False

    @property
    def final(self) -> bool:
        """Whether to try again would not make it right."""
        return self.kind == buffers.SharedBufferError.__name__

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Keep an exception, with the frames of the user's code in words."""
        frames = error.__traceback__
        while frames is not None and os.path.dirname(frames.tb_frame.f_code.co_filename) == _HERE:
            frames = frames.tb_next
        lines = "".join(traceback.format_exception(type(error), error, frames))
        return cls(type(error).__name__, str(error), lines, error)

    def __reduce__(self) -> Any:
        error = self.error
        try:  # an exception that cannot be made again would break the pool that carries it
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = None
        return Failure, (self.kind, self.text, self.lines, error, self.timed_out)


class Task:
    """A function of the user's, ready to be run anywhere."""

    def __init__(self, function: Function, limit: float | None, address: tuple[str, str, str] | None) -> None:
        self.function = function
        self.__name__ = str(getattr(function, "__name__", type(function).__name__))  # for dashboards and logs
        self.limit = limit
        self.address = address  # module, name and role of a decorated function
        self.by_reference = False  # whether a worker shares the main program
        self.away = False

    def __call__(self, args: Any, kwargs: dict[str, Any], ticket: int = 0) -> Any:
        """Run it; give what it returned, in memory of its own, or the failure."""
        if self.away:  # arrays that travelled are writable again
            _freeze([*args, *kwargs.values()])
        begun = buffers.begin()
        try:
            if self.limit is None:
                return buffers.own([self.function(*args, **kwargs)], begun)
            return buffers.own([_limited(self.function, args, kwargs, self.limit)], begun)
        except (Exception, SystemExit) as error:
            return Failure.of(error)

    def __reduce__(self) -> Any:
        return _revive, (_payload(self), self.limit)


def _freeze(values: Any) -> None:
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif isinstance(value, dict):
            _freeze(value.values())
        elif isinstance(value, (tuple, list)):
            _freeze(value)


def _limited(function: Function, args: Any, kwargs: dict[str, Any], limit: float) -> Any:
    """Wait for a function for so many seconds; it goes on unseen if it is not done by then."""
    box: list[Any] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            box.append((True, context.run(function, *args, **kwargs)))
        except BaseException as error:
            box.append((False, error))

    thread = threading.Thread(target=run, name="pullback-external", daemon=True)
    thread.start()
    thread.join(limit)
    if not box:
        frame = sys._current_frames().get(thread.ident or 0)
        lines = "".join(traceback.format_stack(frame)) if frame is not None else ""
        return Failure("TimeoutError", f"no result after {limit:g} s", lines, None, timed_out=True)
    done, value = box.pop()
    if not done:
        raise value
    return value


# ── travelling ───────────────────────────────────────────────────────────────────────────────────────────


def _payload(task: Task) -> Any:
    function, address = task.function, task.address
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    importable = task.by_reference or module != "__main__"
    if importable and module and _look_up(module, name) is function:
        return "itself", function
    if (
        address is not None
        and (task.by_reference or address[0] != "__main__")
        and _unwrapped(*address) is function
    ):
        return "address", address
    try:
        import cloudpickle
    except ImportError:
        if address is not None and _unwrapped(*address) is function:
            return "address", address
        raise DefinitionError.about(
            name or repr(function),
            found="a function inside another one, or a lambda, and an executor of other processes",
            expected="a function that another process can import",
            fix="define it at the top of a module, or pip install cloudpickle",
        ) from None
    return "value", cloudpickle.dumps(function)


def _revive(payload: tuple[str, Any], limit: float | None) -> Task:
    how, what = payload
    if how == "address":
        function = _unwrapped(*what)
        if function is None:
            raise ImportError(f"{what[0]}.{what[1]} has no {what[2]} in this process")
    else:
        function = pickle.loads(what) if how == "value" else what
    task = Task(function, limit, None)
    task.away = True
    return task


def _look_up(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _unwrapped(module: str, name: str, role: str) -> Function | None:
    """Find a function behind the decorated one that a module shows."""
    if module not in sys.modules:
        importlib.import_module(module)
    external = getattr(_look_up(module, name), "external", None)
    return None if external is None else external.role(role)
