"""The child process: it runs one target with the recorder on, then checks what was found.

`python -m pullback.record.child FOLDER`: the job is read from `FOLDER/job.json`, events go to
`FOLDER/events`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from pullback import configuration
from pullback.errors import ConfigurationError
from pullback.record import store
from pullback.record.clock import Clock, Stop
from pullback.record.events import Events
from pullback.record.job import Job
from pullback.record.listening import recording
from pullback.record.recorder import Recorder
from pullback.record.sample import Recorded
from pullback.record.script import run_script, told
from pullback.view.definition import module_name


class Child:
    """Do one job."""

    def __init__(self, job: Job, events: Events) -> None:
        self.job = job
        self.events = events
        self.options = job.options
        self.settings = job.options.settings
        self.name = job.target.text
        self.configuration = configuration.use(job.options.configuration or None)  # the program may go away
        self.names: set[str] = set()  # of the rules that were seen, checked or not
        self.abrupt = False  # threads of a stopped script would keep the process alive

    def work(self) -> None:
        """Do what the target asks for."""
        try:
            self._work()
        except ModuleNotFoundError as error:
            module = self.job.target.module
            if not error.name or not f"{module}.".startswith(f"{error.name}."):
                raise
            self.events.send("problem", text=f"no file, folder or module is named {module}")
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
        elif kind == "function":
            self.function()
        else:
            self.modules()

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
                problem = run_script(self.job.target.module, list(self.options.arguments))
            recorder.on = False
        _flush()
        if os.getpid() != process:  # the script forked: only the first process reports
            os._exit(0)
        self.abrupt = clock.rang
        if clock.rang:
            at_calls = self.options.calls is not None and recorder.seen >= self.options.calls
            limit = f"{self.options.calls} calls" if at_calls else f"{self.options.seconds:g} s"
            self.events.send(
                "note", text=f"{self.name} was stopped after {limit}; what it had used by then is checked"
            )
        if problem:
            self.events.send("problem", text=problem)
        for error in recorder.errors[:1]:
            self.events.send("note", text=f"not every call was recorded: {type(error).__name__}: {error}")
        if not recorder.rules and not problem:
            defined = len(recorder.defined)
            said = f"defines {defined} but calls none" if defined else "uses none"
            self.events.send("problem", text=f"no custom gradient to check: {self.name} {said}")
        self.names.update(rule.qualified for rule in recorder.defined.values())
        self.check(recorder.rules.values())

    def script_again(self) -> None:
        """Check the samples of a script that died, on the rules that importing it defines."""
        kept, lost = store.read(self.job.folder)
        recorder = Recorder(everything=self.options.everything)
        clock = Clock()
        self.events.send("phase", phase="importing", what=self.name)
        wanted = {place for place, _ in kept}

        def enough() -> None:
            # One that trains when it is imported would die again: it is stopped at the first call of a rule
            # once all are there. Nothing of the program needs to go on here.
            if wanted <= set(recorder.defined):
                raise Stop
            recorder.full = enough

        recorder.most, recorder.full = 1, enough
        with recording(recorder), clock.watching(self.options.seconds):
            run_script(self.job.target.module, list(self.options.arguments), name="__pullback_again__")
        recorder.on = False
        self.abrupt = True
        rules: dict[tuple[str, int, str], Recorded] = {}
        for place, sample in kept:
            rule = recorder.defined.get(place)
            if rule is None:
                lost += 1
            else:
                rules[place] = rule
                rule.calls += 1
                rule.keep(sample, 3)
        if lost:
            self.events.send(
                "problem",
                text=f"{lost} recorded call(s) of {self.name} are lost: their rules could not be built again",
            )
        self.check(rules.values())

    # -- functions and modules --------------------------------------------------------------------------

    def function(self) -> None:
        """Check one function."""
        from pullback.record.modules import as_rule, load

        target = self.job.target
        self.events.send("phase", phase="importing", what=target.module)
        value: object = load(target.module)
        for part in target.function.split("."):
            if not hasattr(value, part):
                self.events.send("problem", text=f"{target.module} has no {target.function}")
                return
            value = getattr(value, part)
        if not callable(value):
            self.events.send("problem", text=f"{self.name} is no function but a {type(value).__name__}")
            return
        self.found([as_rule(value)])

    def modules(self) -> None:
        """Check every rule of every module."""
        from pullback.record.modules import files_of, is_method, load, names_of, rules_of

        target = self.job.target
        names = files_of(target.module) if target.kind == "folder" else names_of(target.module)
        found = 0
        recorder = Recorder(everything=self.options.everything)
        for name in names:
            if name in self.job.skip:
                continue
            self.events.send("phase", phase="importing", what=name)
            try:
                with recording(recorder):
                    module = load(name)
            except (Exception, SystemExit) as error:  # importing runs the user's code
                shown = os.path.relpath(name) if os.path.isabs(name) else name
                self.events.send("problem", text=f"{shown} could not be imported: {told(error)}")
                continue
            # Those that no name of the module holds were seen when it was imported.
            file = os.path.abspath(getattr(module, "__file__", None) or "")
            rules = {place: rule for place, rule in recorder.defined.items() if rule.path == file}
            for rule in [rule for rule in rules.values() if is_method(rule)]:
                where = f"{rule.name} ({os.path.relpath(file)}:{rule.line})"
                self.events.send("note", text=f"{where} is a method: check a script that uses it")
                del rules[rule.place]
            rules.update({r.place: r for r in rules_of(module, everything=self.options.everything)})
            found += len(rules)
            self.names.update(rule.qualified for rule in recorder.defined.values())
            self.found(rules.values())  # at once: the next module may crash
        if not found and not self.job.skip:
            self.events.send(
                "problem", text=f"no custom gradient found in {self.name} ({len(names)} modules)"
            )

    def found(self, rules: Iterable[Recorded]) -> None:
        """Check rules that were not seen at work."""
        from pullback.record.checking import NoInputsError, with_inputs

        ready = []
        for rule in rules:
            self.events.send("phase", phase="trying", what=rule.name)
            try:
                ready.append(with_inputs(rule, self.settings))
            except NoInputsError as error:
                fix = f"give it some: @pb.example(…) above `def {rule.name}`"
                self.events.send("problem", text=f"{error}; {fix}")
        self.check(ready)

    def check(self, rules: Iterable[Recorded]) -> None:
        """Check rules, each told as soon as it is done."""
        from pullback.record.checking import checked

        rules = list(rules)
        self.names.update(rule.qualified for rule in rules)
        for done, rule in enumerate(rules):
            self.events.send("phase", phase="checking", what=rule.name, done=done, total=len(rules))
            try:
                for entry in checked(rule, target=self.name, settings=self.settings):
                    self.events.entry(entry)
            except ConfigurationError as error:
                self.events.send("problem", text=str(error))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the script may have closed or replaced it
            continue


def main() -> None:
    """Read the job, do it, and end."""
    folder = sys.argv[1]
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        job = Job.loads(file.read())
    child = Child(job, Events(os.path.join(folder, "events")))
    try:
        child.work()
    except KeyboardInterrupt:
        child.events.send("problem", text="interrupted")
    except (Exception, SystemExit) as error:
        child.events.send("problem", text=f"{job.target.text} could not be checked: {told(error)}")
        child.events.send("done")
    if child.abrupt:
        _flush()
        os._exit(0)


if __name__ == "__main__":
    main()
