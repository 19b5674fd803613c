"""The parent: it starts children for the targets, reads what they tell, and makes up for one that dies.

The child's standard streams are the user's, untouched. Whatever a target does, every finding already made is
kept. A child that hangs or crashes in a rule is followed by one that goes on with the next; several children
may share the rules of one target. What is found stands in the order of the targets and their rules.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullback.record import store
from pullback.record.events import Reader
from pullback.record.found import Found, Purse
from pullback.record.job import Job, Options
from pullback.record.process import Process, Watch, crashed, signals
from pullback.record.target import Target, TargetError, parse
from pullback.report.block import MEND
from pullback.report.entry import Run
from pullback.report.printable import cleaned, printable

PATIENCE = 20.0  # seconds past its limit after which a script that does not hear the stop is ended
# Of its budget, after which a rule is left from outside: the child has not left it by itself. A search that
# has found an edit takes the time to prove it.
LATE = {"checking": 1.5, "trying": 1.5, "mending": 3.0}
PAUSE = 0.02  # seconds between two looks
Progress = Callable[[dict[str, Any]], None]
Line = Iterator[None]  # children, one after another; each step is one look
END = object()


def launch_all(texts: Sequence[str], run: Run, progress: Progress, options: Options) -> None:
    """Check targets, and add what is found to the run, also when it is told to end."""
    purse = Purse(options.budget)
    apart = options.jobs > 1 and len(texts) > 1  # what several scripts print at a time is put in order
    parts = [Part(text, options, progress, purse, keep=apart) for text in texts]
    waiting = [line for part in parts for line in part.lines()]
    at_work: list[Line] = []
    with signals() as heard:
        try:
            while (waiting or at_work) and not _over(heard, parts):
                _step(parts, waiting, at_work, options)
                time.sleep(PAUSE)
        finally:
            for part in parts:
                part.close()
                part.found.add_to(run)
    if heard and _over(heard, parts):
        run.signal = next((n for n in heard if n != signal.SIGINT), signal.SIGINT)
        run.problems.append(f"ended by {signal.Signals(run.signal).name}")


def _over(heard: list[int], parts: list[Part]) -> bool:
    """Tell whether to end: at the first signal, or at the second interrupt of a script.

    A script that is interrupted ends, and what it had used is checked.
    """
    parts = [part for part in parts if not part.options.repeated]
    if heard == [signal.SIGINT] and any(part.running or part.interrupted for part in parts):
        for part in parts:
            part.interrupt()
        return False
    return bool(heard)


def _step(parts: list[Part], waiting: list[Line], at_work: list[Line], options: Options) -> None:
    """Look at every child once, and start the next ones where there is room."""
    for part in parts:
        waiting += part.helpers(options.jobs - len(at_work) - len(waiting))
    while waiting and len(at_work) < options.jobs:
        at_work.append(waiting.pop(0))
    for line in list(at_work):
        if next(line, END) is END:
            at_work.remove(line)


class Part:
    """Check one target: its first child, those that follow one that died, and those that help."""

    def __init__(
        self, text: str, options: Options, progress: Progress, purse: Purse, *, keep: bool = False
    ) -> None:
        self.text = text
        self.options = options
        self.progress = progress
        self.purse = purse
        self.found = Found(purse)
        self.interrupted = self.finished = False
        # What the target prints, kept until its turn comes.
        self.streams = (tempfile.TemporaryFile(), tempfile.TemporaryFile()) if keep else None  # noqa: SIM115
        self.folder = ""
        self.processes: dict[Process, dict[str, Any]] = {}  # and the last phase of each
        self.wanted: Target | None = None  # that helpers may be started for

    def lines(self) -> list[Line]:
        """Read the target, and give its first line of children."""
        try:
            target = parse(self.text)
        except TargetError as error:
            self.found.problems.append(printable(str(error)))
            return []
        return [self._line(Job(target, "", self.options))]

    def helpers(self, room: int) -> list[Line]:
        """Give lines of children that help with the rules or modules of this target, once it has several."""
        target = self.wanted
        if target is None or room <= 0:
            return []
        self.wanted = None
        count = min(room, self.found.total - 1)
        again = target.kind == "script"
        job = Job(target, "", self.options, rules=self.found.order, again=again, helps=True)
        return [self._line(job) for _ in range(count)]

    @property
    def running(self) -> bool:
        """Tell whether a script runs, or is about to."""
        phases = [last["phase"] for last in self.processes.values() if not last["again"]]
        return any(phase in ("starting", "running", "importing") for phase in phases)

    def interrupt(self) -> None:
        """Pass an interrupt on, once."""
        if not self.interrupted:
            self.interrupted = True
            for process in self.processes:
                process.interrupt()

    def close(self) -> None:
        """End every child, and leave nothing behind."""
        for process, last in self.processes.items():
            process.end()
            last["rest"]()  # what it told before the end came
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        for kept, stream in zip(self.streams or (), (sys.stdout, sys.stderr)):
            kept.seek(0)
            stream.flush()
            getattr(stream, "buffer", io.BytesIO()).write(kept.read())
            stream.flush()

    def _line(self, job: Job) -> Line:
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="pullback-")
        following: Job | None = job
        while following is not None:
            following = yield from self._child(following)
        self.finished = self.finished or not job.helps

    def _child(self, job: Job) -> Generator[None, None, Job | None]:
        """Run one child; give the job of the next one, if there is more to do."""
        os.makedirs(self.folder, exist_ok=True)  # a script may have removed it
        folder = tempfile.mkdtemp(prefix="child-", dir=self.folder)
        left = self.purse.left
        options = replace(job.options, budget=None if left is None else left / job.options.jobs)
        job = replace(job, folder=self.folder, options=options)
        Path(folder, "job.json").write_text(job.dumps(), encoding="utf-8")
        reader = Reader(os.path.join(folder, "events"))
        last: dict[str, Any] = {"phase": "starting", "modules": [], "finished": False, "again": job.again}
        process = Process(folder, silent=job.again or job.options.repeated, streams=self.streams)
        self.processes[process] = last

        def read() -> None:
            for event in reader.new():
                watch.begin()
                self._told(cleaned(event), event, last, job)

        last["rest"] = read
        watch = Watch(process.pid)
        seconds = job.options.seconds
        why, code = "", None
        while code is None:
            yield
            code = process.poll()
            read()
            late = time.monotonic() - watch.wall
            if last["phase"] == "running" and seconds is not None and late > seconds + PATIENCE:
                why = f"did not stop after {seconds:g} s and was ended"
            elif last["phase"] in LATE and watch.seconds() > LATE[last["phase"]] * last["budget"] + 1:
                why = "late"
            elif job.helps and self.finished and last["phase"] not in LATE:
                why = last["finished"] = "not needed any more"
            if why:
                process.end()
                code = process.poll()
        del self.processes[process]
        reader.close()
        return None if last["finished"] else self._next(job, last, why or how(code))

    def _told(self, event: dict[str, Any], raw: dict[str, Any], last: dict[str, Any], job: Job) -> None:
        kind = event["kind"]
        if kind == "phase":
            last.update(event)
            last["location"] = tuple(raw.get("location", ()))
            if last["phase"] == "importing":
                last["modules"].append(raw["what"])
            self.progress(event)
        elif kind == "done":
            last["finished"] = True
        else:
            self.found.told(event, raw)
        if kind in ("rules", "several") and self.found.total > 1 and not job.helps:
            self.wanted = job.target

    def _next(self, job: Job, last: dict[str, Any], ended: str) -> Job | None:
        """Say what is left to do after a child died."""
        text, phase = job.target.text, str(last["phase"])
        what = str(last.get("what", text))
        shown = os.path.relpath(what) if os.path.isabs(what) else what
        problems = self.found.problems
        if phase in LATE:
            location, seed = last["location"], job.options.settings.seed
            if phase == "mending":
                late = f"did not end within its budget of {last['budget']:.3g} s, and was left"
                said = f"no edit: the search {late if ended == 'late' else ended}"
                self.found.leave(last, text, seed, said, "", probe=MEND)
                self.purse.spent += last["budget"]
            elif ended == "late":
                said = f"it did not return within its budget of {last['budget']:.3g} s, and was left"
                self.found.leave(last, text, seed, said, "budget")
                self.purse.spent += last["budget"]
            else:
                problems.append(f"{text} {ended} while {shown} was checked")
                self.found.leave(last, text, seed, f"its process {ended}", "died")
            skip, mine = (*job.skip, *last["modules"][:-1]), (*job.mine, *last["modules"][-1:])
            again = job.target.kind == "script"
            if job.target.kind == "function" or (again and not self.found.order):
                return None
            rules = self.found.order
            return replace(
                job, done=(*self.found.done, location), skip=skip, mine=mine, rules=rules, again=again
            )
        if job.helps:
            return None  # the others have everything
        if job.again:
            problems.append(f"{text} {ended} again when it was imported: its recorded calls are lost")
            return None
        if phase == "running":
            count = len(store.names(self.folder)) if os.path.isdir(self.folder) else 0
            problems.append(
                f"{text} {ended} before its rules could be checked: {count} call(s) were recorded"
            )
            return replace(job, again=True) if count else None
        doing = {"importing": "while it was imported", "starting": "before it was started"}
        problems.append(f"{shown if phase == 'importing' else text} {ended} {doing[phase]}")
        if job.target.kind not in ("folder", "module") or not last["modules"]:
            return None
        return replace(job, skip=(*job.skip, *last["modules"]), done=self.found.done)


def how(code: int | None) -> str:
    """Say how a process ended."""
    return f"ended at once with exit status {code}" if code is None or code >= 0 else crashed(code)
