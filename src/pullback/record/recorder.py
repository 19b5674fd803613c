"""The recorder: told of every rule made and called, it keeps a few calls of each.

It must be invisible to the program: no value, gradient or exception of it may change, so whatever goes wrong
here is kept for the report and never raised. And nothing is left out in silence: a call that could not be
recorded, a rule of a framework's own, and the rest of what a factory makes by the thousand are counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.record import frameworks, store
from pullback.record.identity import Identity, identity_of
from pullback.record.known import Known
from pullback.record.sample import Location, Recorded
from pullback.view.definition import Definition
from pullback.view.native import Given

VARIANTS = 16  # rules of one line that are told apart; the rest is counted


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
        self.rules: dict[str, Recorded] = {}
        self.more: dict[tuple[str, int, str], set[str]] = {}  # by line, the rules beyond those told apart
        self.own: dict[str, set[str]] = {}  # by package, the rules of a framework's own
        self._known: Known[Identity | None] = Known()
        self._made: dict[tuple[str, int, str], dict[str, Definition]] = {}  # the last by no key
        self._lock = threading.RLock()

    def made(self, who: Callable[[], Definition]) -> None:
        """Be told of a definition. Its gradient may come later: who it is, is asked when that is needed."""
        if not self.on:
            return
        try:
            known = who()
            if self._wanted(known):
                with self._lock:
                    made = self._made.setdefault((*known.location, known.name), {})
                    self._settle(made)
                    if len(made) <= VARIANTS:
                        made[""] = known
        except Exception as error:  # no mistake of the recorder may reach the program
            self.errors.append(error)

    def called(self, who: Callable[[], Definition], given: Callable[[], Given]) -> None:
        """Be told of a call; what is asked for here may fail without harm."""
        if not self.on:
            return
        try:
            known = who()
            if not known.gives:  # a gradient may still come
                return
            with self._lock:
                who_it_is = self._known.of(known.anchor, lambda: self._identity(known))
                rule = None if who_it_is is None else self._rule(known, who_it_is)
                if rule is not None:
                    self._keep(rule, known, given)
        except Exception as error:
            self.errors.append(error)

    def pulled(self, who: Callable[[], Definition], given: Callable[[], Sequence[Any]]) -> None:
        """Be told that a gradient is asked for: an output that never has a cotangent is not relied on."""

        def places(rule: Recorded) -> tuple[set[int], Iterable[int]]:
            cotangents = given()
            count, used = len(cotangents), rule.used.setdefault(len(cotangents), set())
            framework = frameworks.FRAMEWORKS[rule.framework or frameworks.of(cotangents)[0]]
            unseen = (k for k in range(count) if k not in used)
            return used, [k for k in unseen if count == 1 or not framework.absent(cotangents[k])]

        self._note(who, places)

    def moved(self, who: Callable[[], Definition], given: Callable[[], Sequence[bool]]) -> None:
        """Be told which tensors of a call a gradient flows to: of the others none was asked."""

        def places(rule: Recorded) -> tuple[set[int], Iterable[int]]:
            moves = given()
            return rule.moved.setdefault(len(moves), set()), [k for k, flows in enumerate(moves) if flows]

        self._note(who, places)

    def _note(
        self, who: Callable[[], Definition], places: Callable[[Recorded], tuple[set[int], Iterable[int]]]
    ) -> None:
        """Add places to a set of those that a rule is differentiated by, and write down what is new."""
        if not self.on:
            return
        try:
            known = who()
            with self._lock:
                who_it_is = self._known.of(known.anchor, lambda: self._identity(known))
                rule = None if who_it_is is None else self.rules.get(who_it_is.key)
                if rule is None:
                    return
                noted, found = places(rule)
                new = set(found) - noted
                noted |= new
                if new and self.folder is not None:
                    store.write_used(self.folder, rule)
        except Exception as error:
            self.errors.append(error)

    @property
    def defined(self) -> dict[Location, Recorded]:
        """List the rules that were made or called, as they are now."""
        rules = list(self.rules.values())
        for known in (known for made in self._made.values() for known in made.values()):
            if known.gives:
                found = identity_of(known)
                if found.key not in self.rules:
                    rules.append(Recorded.of(known, found.key, found.facts))
        return {rule.location: rule for rule in rules}

    @staticmethod
    def _settle(made: dict[str, Definition]) -> None:
        """Name the last rule of a line by its key, if its gradient is there by now."""
        last = made.pop("", None)
        if last is not None:
            made.setdefault(identity_of(last).key if last.gives else str(id(last)), last)

    def _identity(self, known: Definition) -> Identity | None:
        """Say who a rule is; nobody, if it is not to be checked."""
        if not self._wanted(known):
            if not known.module.startswith("pullback.hosts"):
                self.own.setdefault(known.owner, set()).add(f"{known.module}.{known.name}")
            return None
        return identity_of(known)

    def _rule(self, known: Definition, found: Identity) -> Recorded | None:
        rule = self.rules.get(found.key)
        if rule is None:
            line = (*known.location, known.name)
            if sum((r.path, r.line, r.name) == line for r in self.rules.values()) >= VARIANTS:
                self.more.setdefault(line, set()).add(found.key)
                return None
            rule = self.rules[found.key] = Recorded.of(known, found.key, found.facts)
        return rule

    def _keep(self, rule: Recorded, known: Definition, given: Callable[[], Given]) -> None:
        rule.calls += 1
        self.seen += 1
        try:
            # Values are copied for the few calls that are kept, not for every one.
            hollow = frameworks.sample(given(), rule.framework, copy=self.spec)
            if not rule.wants(hollow, self.limit):
                rule.passed(hollow)
            else:
                sample = frameworks.sample(given(), rule.framework, copy=self.freeze)
                sample.function = known.kept()[0]
                if rule.keep(sample, self.limit) and self.folder is not None:
                    store.write(self.folder, self.seen, rule, sample)
        except Exception as error:
            lines = str(error).strip().splitlines()
            why = f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
            rule.lost[why] = rule.lost.get(why, 0) + 1
        if self.most is not None and self.seen >= self.most and self.full is not None:
            full, self.full = self.full, None
            full()

    def _wanted(self, known: Definition) -> bool:
        if self.everything:
            return not f"{known.module}.".startswith("pullback.hosts.")
        return not known.owner
