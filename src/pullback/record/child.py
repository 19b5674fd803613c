"""The child process: it runs one target with the recorder on, then checks what was found.

The job is read from `FOLDER/job.json`, events go to `FOLDER/events`. What is needed later is imported before
the target runs: it may have modules of the same names, or replace what it finds.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullback import configuration
from pullback.checker.budget import Budget
from pullback.checker.probe import probes
from pullback.clock import Clock, Stop
from pullback.errors import ConfigurationError
from pullback.record import store
from pullback.record.checking import NoInputsError, checked, unchecked, with_inputs
from pullback.record.claims import claim
from pullback.record.events import Events
from pullback.record.frameworks import FRAMEWORKS
from pullback.record.imports import when_imported
from pullback.record.job import Job
from pullback.record.listening import recording
from pullback.record.modules import as_rule, files_of, is_method, load, names_of, rules_of
from pullback.record.naming import name_apart, own_words
from pullback.record.quiet import flush, held, quiet
from pullback.record.recorder import Recorder
from pullback.record.sample import Location, Recorded
from pullback.record.script import beside, run_script, told
from pullback.report.entry import Entry
from pullback.view.definition import module_name


class Child:
    """Do one job."""

    def __init__(self, job: Job, events: Events, before: set[str]) -> None:
        self.job = job
        self.before = before
        self.events = events
        self.options = job.options
        self.settings = job.options.settings
        self.name = job.target.text
        self.configuration = configuration.use(job.options.configuration or None)  # the program may go away
        self.names: set[Any] = set()  # of the rules that were seen, checked or not
        self.spent = 0.0
        self.at = 0  # the number of the module whose rules are checked
        self.abrupt = False  # threads of a stopped script would keep the process alive

    def work(self) -> None:
        """Do what the target asks for."""
        try:
            self._work()
        except ModuleNotFoundError as error:
            module = self.job.target.module
            if not error.name or not f"{module}.".startswith(f"{error.name}."):
                raise
            self.events.problem(f"no file, folder or module is named {module}")
        used, unused = configuration.heard(self.configuration, self.names, self.script_name())
        self.events.send("declared", used=used, unused=unused)
        self.events.send("done")

    def script_name(self) -> str:
        """Name the script as an import would, if it is one."""
        target = self.job.target
        return module_name(target.module) if target.kind == "script" else ""

    def _work(self) -> None:
        kind = self.job.target.kind
        if kind == "script" and self.job.again:
            self.script_again()
        elif kind == "script":
            self.script()
        else:
            # Names are looked up from the working folder; what is imported already stays what it is.
            with beside(os.getcwd(), set(sys.modules)):
                self.function() if kind == "function" else self.modules()

    # -- scripts ----------------------------------------------------------------------------------------

    def script(self) -> None:
        """Run the script, then check every rule it used at the values it saw."""
        clock = Clock()
        recorder = Recorder(
            everything=self.options.everything,
            calls=self.options.calls,
            full=clock.ring,
            folder=self.job.folder,
        )
        self.events.send("phase", phase="running", what=self.name)
        process = os.getpid()
        problem = ""
        with recording(recorder):
            with clock.watching(self.options.seconds):
                problem = run_script(self.job.target.module, list(self.options.arguments), before=self.before)
            recorder.on = False
        flush()
        if os.getpid() != process:  # the script forked: only the first process reports
            os._exit(0)
        self.abrupt = clock.rang
        if clock.rang:
            at_calls = self.options.calls is not None and recorder.seen >= self.options.calls
            limit = f"{self.options.calls} calls" if at_calls else f"{self.options.seconds:g} s"
            self.events.note(f"{self.name} was stopped after {limit}; what it had used by then is checked")
        if problem:
            self.events.problem(problem)
        self.tell(recorder)
        own = own_words(recorder)
        if not recorder.rules and not problem:
            defined = len(recorder.defined)
            said = f"defines {defined} but calls none" if defined else "uses none"
            said += f" of its own ({own})" if own else ""
            self.events.problem(f"no custom gradient to check: {self.name} {said}")
        elif own:
            self.events.note(f"{self.name} uses others too: {own}")
        self.names.update(rule.named for rule in recorder.defined.values())
        rules = list(recorder.rules.values())
        self.events.send("rules", locations=[rule.location for rule in rules])
        self.check(rules)

    def tell(self, recorder: Recorder) -> None:
        """Say what the recorder saw and could not keep."""
        for error in {f"{type(e).__name__}: {e}": e for e in recorder.errors}:
            self.events.problem(f"a rule of {self.name} could not be recorded: {error}")
        for rule in recorder.rules.values():
            if count := rule.unchecked:
                where = f"{rule.name} ({os.path.relpath(rule.path)}:{rule.line})" if rule.path else rule.name
                said = "signature was" if count == 1 else "signatures were"
                self.events.note(f"{where}: {count} further {said} not checked")
        for (path, line, name), keys in recorder.more.items():
            where = f"{name} ({os.path.relpath(path)}:{line})"
            self.events.note(f"{where}: {len(keys)} more made by the same factory, not checked")

    def script_again(self) -> None:
        """Check the samples of a script that died, on the rules that importing it defines."""
        kept, lost = store.read(self.job.folder)
        used = store.read_used(self.job.folder)
        recorder = Recorder(everything=self.options.everything)
        clock = Clock()
        self.events.send("phase", phase="importing", what=self.name)
        wanted = {location for location, _ in kept}

        def enough() -> None:
            # One that trains when it is imported would die again: it is stopped at the first call of a rule
            # once all are there. Nothing of the program needs to go on here.
            if wanted <= set(recorder.defined):
                raise Stop
            recorder.full = enough

        recorder.most, recorder.full = 1, enough
        with recording(recorder), clock.watching(self.options.seconds):
            arguments = list(self.options.arguments)
            run_script(self.job.target.module, arguments, name="__pullback_again__", before=self.before)
        recorder.on = False
        self.abrupt = True
        rules: dict[Location, Recorded] = {}
        defined = recorder.defined
        for location, sample in kept:
            rule = defined.get(location)
            if rule is None:
                lost += 1
            else:
                rules[location] = rule
                rule.calls += 1
                rule.keep(sample, 3)
                rule.used, rule.moved = used.get(location, ({}, {}))
        if lost and not self.job.helps:  # the other child has them all
            self.events.problem(
                f"{lost} recorded call(s) of {self.name} are lost: their rules could not be built again"
            )
        self.names.update(rule.named for rule in recorder.defined.values())
        ordered = [rules[location] for location in self.job.rules or rules if location in rules]
        # From the other end than the child that ran the script.
        self.check(ordered[::-1] if self.job.helps else ordered)

    # -- functions and modules --------------------------------------------------------------------------

    def function(self) -> None:
        """Check one function."""
        target = self.job.target
        self.events.send("phase", phase="importing", what=target.module)
        with held(2):
            value: object = load(target.module)
        for part in target.function.split("."):
            if not hasattr(value, part):
                self.events.problem(f"{target.module} has no {target.function}")
                return
            value = getattr(value, part)
        if not callable(value):
            self.events.problem(f"{self.name} is no function but a {type(value).__name__}")
            return
        self.found([as_rule(value)])

    def modules(self) -> None:
        """Check every rule of every module."""
        target = self.job.target
        with held(2):  # naming the modules of a package imports it
            names = files_of(target.module) if target.kind == "folder" else names_of(target.module)
        found = 0
        recorder = Recorder(everything=self.options.everything)
        self.events.send("several", count=len(names))
        for self.at, name in enumerate(names):
            if name in self.job.skip or not (name in self.job.mine or self.claims(name)):
                continue
            self.events.send("phase", phase="importing", what=name)
            try:
                with recording(recorder), held(2):
                    module = load(name)
            except (Exception, SystemExit) as error:  # importing runs the user's code
                shown = os.path.relpath(name) if os.path.isabs(name) else name
                self.events.problem(f"{shown} could not be imported: {told(error)}")
                continue
            # Those that no name of the module holds were seen when it was imported.
            file = os.path.abspath(getattr(module, "__file__", None) or "")
            rules = {location: rule for location, rule in recorder.defined.items() if rule.path == file}
            for rule in [rule for rule in rules.values() if is_method(rule)]:
                where = f"{rule.name} ({os.path.relpath(file)}:{rule.line})"
                self.events.note(f"{where} is a method: check a script that uses it")
                del rules[rule.location]
            rules.update({r.location: r for r in rules_of(module, everything=self.options.everything)})
            found += len(rules)
            self.names.update(rule.named for rule in recorder.defined.values())
            self.found(rules.values())  # at once: the next module may crash
        if not found and not self.job.skip:
            self.events.send(
                "nothing", text=f"no custom gradient found in {self.name} ({len(names)} modules)"
            )

    def found(self, rules: Iterable[Recorded]) -> None:
        """Check rules that were not seen at work."""
        ready = []
        for rule in rules:
            if rule.location in self.job.done:
                continue
            self.events.send(
                "phase", phase="trying", what=rule.name, location=rule.location, budget=self.settings.budget
            )
            try:
                ready.append(with_inputs(rule, self.settings))
            except NoInputsError as error:
                fix = f"give it some: @pb.example(…) above `def {rule.name}`"
                self.events.problem(f"{error}; {fix}")
        self.check(ready)

    def check(self, rules: Iterable[Recorded]) -> None:
        """Check rules, each told as soon as it is done."""
        rules = list(rules)
        self.names.update(rule.named for rule in rules)
        name_apart(rules)
        rules = [rule for rule in rules if rule.location not in self.job.done]
        for done, rule in enumerate(rules):
            if not self.claims(rule.location):
                continue
            left = self.left()
            budget = min(self.settings.budget, left / (len(rules) - done))  # what one leaves is the others'
            about = {"what": rule.shown, "done": done, "total": len(rules), "location": rule.location}
            self.events.send("phase", phase="checking", budget=budget, **about)

            def heard(entry: Entry, kind: str = "partial", location: object = rule.location) -> None:
                self.events.entry(entry, kind, location=location, at=self.at)

            if left <= 0:
                said = f"the budget of the run, {self.options.budget:g} s, was spent before it was checked"
                report = unchecked(rule, said, self.settings, reason="budget")
                heard(Entry(report, self.name, rule.path, rule.line, "", rule.calls, rule.qualified), "entry")
                continue
            mend = min(self.settings.mend, left)
            settings, begin = replace(self.settings, budget=budget, mend=mend), Budget(budget)
            searching = functools.partial(self.searching, budget, mend, **about)
            try:
                with quiet():
                    for entry in checked(
                        rule, target=self.name, settings=settings, told=heard, searching=searching
                    ):
                        heard(entry, "entry")
                        self.left_out(rule, entry)
            except ConfigurationError as error:
                self.events.problem(str(error))
            self.events.send("spent", seconds=begin.seconds)
            self.spent += begin.seconds

    def left_out(self, rule: Recorded, entry: Entry) -> None:
        """Tell which outputs of a rule were not judged."""
        for finding in entry.report.findings:
            if finding.probe == "outputs":
                self.events.note(f"{rule.shown}: {finding.sentence}")

    @contextlib.contextmanager
    def searching(self, budget: float, mend: float, **about: Any) -> Iterator[None]:
        """Tell that an edit of a rule is searched, and then that its check goes on."""
        self.events.send("phase", phase="mending", budget=mend, **about)
        yield
        self.events.send("phase", phase="checking", budget=budget, **about)

    def left(self) -> float:
        """Give what this child has left of the budget of the run."""
        return math.inf if self.options.budget is None else self.options.budget - self.spent

    def claims(self, what: object) -> bool:
        """Claim a rule or a module, where several children share the work."""
        if self.options.jobs == 1:
            return True
        mine = claim(self.job.folder, what)
        # without the folder the child that ran the script has everything
        return not self.job.helps if mine is None else mine


def main(before: set[str]) -> None:
    """Read the job, do it, and end; `before` are the modules that Python had imported by itself."""
    folder = sys.argv[2]
    probes()
    job = Job.loads(Path(folder, "job.json").read_text(encoding="utf-8"))
    if job.options.settings.mend:
        import pullback.mend.search  # noqa: F401
    for name in FRAMEWORKS:
        # Nothing of it goes before the process does. To look through it, and to take it apart at the end,
        # costs a second.
        when_imported(name, lambda _: gc.freeze())
    child = Child(job, Events(os.path.join(folder, "events")), before)
    try:
        child.work()
    except KeyboardInterrupt:
        child.events.problem("interrupted")
    except (Exception, SystemExit) as error:
        child.events.problem(f"{job.target.text} could not be checked: {told(error)}")
        child.events.send("done")
    if child.abrupt:
        flush()
        os._exit(0)
