"""The recorder: told of every rule made and called, it keeps a few calls of each.

It must be invisible to the program: no value, gradient or exception of it may change, so whatever goes wrong
here is kept for the report and never raised.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from pullback import tree
from pullback.record import store
from pullback.record.sample import Recorded, Sample
from pullback.rule import written

OWN = ("pullback.", "tensorflow.", "keras.", "tf_keras.")


class Recorder:
    """Collect the rules of a program.

    `freeze` copies a tensor to an array, `spec` takes its shape and dtype only; `limit` is the number of
    signatures kept per rule; `calls` the number of calls after which `full` is run, once; `folder` is where
    samples are written, for the case of a crash.
    """

    def __init__(
        self,
        freeze: Callable[[Any], Any],
        spec: Callable[[Any], Any],
        *,
        limit: int = 3,
        everything: bool = False,
        calls: int | None = None,
        full: Callable[[], None] | None = None,
        folder: str | None = None,
    ) -> None:
        self.freeze = freeze
        self.spec = spec
        self.limit = limit
        self.everything = everything
        self.most = calls
        self.full = full
        self.folder = folder
        self.on = True
        self.seen = 0
        self.errors: list[Exception] = []
        self.rules: dict[Any, Recorded] = {}
        self.defined: dict[tuple[str, int, str], Recorded] = {}
        self._lock = threading.RLock()

    def made(self, body: Any, as_rule: Callable[[], Recorded]) -> None:
        """Be told of a definition."""
        if not self.on or not self._wanted(body):
            return
        try:
            with self._lock:
                rule = as_rule()
                self.defined[rule.place] = rule
        except Exception as error:  # no mistake of the recorder may reach the program
            self.errors.append(error)

    def called(
        self, body: Any, args: tuple[Any, ...], kwargs: dict[str, Any], as_rule: Callable[[], Recorded]
    ) -> None:
        """Be told of a call."""
        if not self.on or not self._wanted(body):
            return
        try:
            with self._lock:
                self._keep(body, args, kwargs, as_rule)
        except Exception as error:
            self.errors.append(error)

    def _keep(
        self, body: Any, args: tuple[Any, ...], kwargs: dict[str, Any], as_rule: Callable[[], Recorded]
    ) -> None:
        key = identity(body)
        rule = self.rules.get(key)
        if rule is None:
            rule = self.rules[key] = as_rule()
            self.defined[rule.place] = rule
        rule.calls += 1
        self.seen += 1
        leaves, structure = tree.flatten((args, kwargs))
        # Values are copied for the few calls that are kept, not for every one.
        if rule.wants(Sample([self.spec(leaf) for leaf in leaves], structure), self.limit):
            sample = Sample([self.freeze(leaf) for leaf in leaves], structure)
            if rule.keep(sample, self.limit):
                rule.function = as_rule().function  # the closure that saw these values
                if self.folder is not None:
                    store.write(self.folder, self.seen, rule, sample)
        if self.most is not None and self.seen >= self.most and self.full is not None:
            full, self.full = self.full, None
            full()

    def _wanted(self, body: Any) -> bool:
        module = str(getattr(body, "__module__", "") or "") + "."
        return not module.startswith("pullback.hosts." if self.everything else OWN)


def identity(body: Any) -> Any:
    """Name the code that runs: rules made anew in every call of a factory share it."""
    function = written(getattr(body, "__func__", body))
    return getattr(function, "__code__", None) or id(function)


def place_of(body: Any) -> tuple[str, int]:
    """Give the file and line of a function, or nothing when it has no Python source."""
    code = getattr(written(getattr(body, "__func__", body)), "__code__", None)
    return ("", 0) if code is None else (os.path.abspath(code.co_filename), code.co_firstlineno)
