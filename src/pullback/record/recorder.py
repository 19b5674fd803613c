"""The recorder: told of every rule made and called, it keeps a few calls of each.

It must be invisible to the program: no value, gradient or exception of it may change, so whatever goes wrong
here is kept for the report and never raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pullback import hosts
from pullback.record import frameworks, store
from pullback.record.sample import Recorded
from pullback.view.definition import Definition
from pullback.view.native import Given

# Packages whose rules are nobody's to mend who runs the program.
OWN = tuple(f"{root}." for root in (*hosts.ROOTS, "pullback", "keras", "tf_keras", "equinox"))


class Recorder:
    """Collect the rules of a program.

    `freeze` copies a tensor to an array, `spec` takes its shape and dtype only; `limit` is the number of
    signatures kept per rule; `calls` the number of calls after which `full` is run, once; `folder` is where
    samples are written, for the case of a crash.
    """

    def __init__(
        self,
        freeze: Callable[[Any], Any] = frameworks.freeze,
        spec: Callable[[Any], Any] = frameworks.spec,
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

    def made(self, who: Callable[[], Definition]) -> None:
        """Be told of a definition."""
        if not self.on:
            return
        try:
            known = who()
            if self._wanted(known):
                with self._lock:
                    rule = Recorded.of(known)
                    self.defined[rule.place] = rule
        except Exception as error:  # no mistake of the recorder may reach the program
            self.errors.append(error)

    def called(self, who: Callable[[], Definition], given: Callable[[], Given]) -> None:
        """Be told of a call; what is asked for here may fail without harm."""
        if not self.on:
            return
        try:
            known = who()
            if self._wanted(known):
                with self._lock:
                    self._keep(known, given())
        except Exception as error:
            self.errors.append(error)

    def _keep(self, known: Definition, given: Given) -> None:
        key = known.key
        rule = self.rules.get(key)
        if rule is None:
            rule = self.rules[key] = Recorded.of(known)
            self.defined[rule.place] = rule
        rule.calls += 1
        self.seen += 1
        # Values are copied for the few calls that are kept, not for every one.
        if rule.wants(frameworks.sample(given, rule.framework, copy=self.spec), self.limit):
            sample = frameworks.sample(given, rule.framework, copy=self.freeze)
            if rule.keep(sample, self.limit):
                rule.function = known.kept()[0]  # the closure that saw these values
                if self.folder is not None:
                    store.write(self.folder, self.seen, rule, sample)
        if self.most is not None and self.seen >= self.most and self.full is not None:
            full, self.full = self.full, None
            full()

    def _wanted(self, known: Definition) -> bool:
        return not f"{known.module}.".startswith("pullback.hosts." if self.everything else OWN)
