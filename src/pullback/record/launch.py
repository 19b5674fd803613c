"""The parent: it starts a child per target, reads what it tells, and makes up for a child that dies.

The child's standard streams are the user's, untouched. Whatever the target does, every finding already made
is kept.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pullback.record import store
from pullback.record.events import Reader
from pullback.record.job import Job, Options
from pullback.record.target import Target
from pullback.report.entry import Run, from_plain

PATIENCE = 20.0  # seconds past its limit after which a script that does not hear the stop is ended
Progress = Callable[[dict[str, Any]], None]


def launch(target: Target, run: Run, progress: Progress, options: Options) -> None:
    """Check one target and add what is found to the run."""
    with tempfile.TemporaryDirectory(prefix="pullback-") as folder:
        job = Job(target, folder, options)
        while True:
            last, ended = _child(job, run, progress)
            if not ended:
                return
            what = str(last.get("what", target.text))
            shown = os.path.relpath(what) if os.path.isabs(what) else what
            if job.again and last["phase"] != "checking":
                run.problems.append(
                    f"{target.text} {ended} again when it was imported: its recorded calls are lost"
                )
                return
            if last["phase"] == "running":
                count = len(store.names(folder))
                run.problems.append(
                    f"{target.text} {ended} before its rules could be checked: {count} call(s) were recorded"
                )
                if not count:
                    return
                job = replace(job, again=True)
                continue
            doing = {"importing": "while it was imported", "starting": "before it was started"}
            when = doing.get(str(last["phase"]), f"while {shown} was checked")
            run.problems.append(f"{shown if last['phase'] == 'importing' else target.text} {ended} {when}")
            if target.kind not in ("folder", "module") or not last["modules"]:
                return
            job = replace(job, skip=(*job.skip, *last["modules"]))


def _child(job: Job, run: Run, progress: Progress) -> tuple[dict[str, Any], str]:
    """Run one child; give its last phase, and how it died if it did."""
    seconds = job.options.seconds
    events = os.path.join(job.folder, "events")
    if os.path.exists(events):
        os.remove(events)
    with open(os.path.join(job.folder, "job.json"), "w", encoding="utf-8") as file:
        file.write(job.dumps())
    child = subprocess.Popen([sys.executable, "-m", "pullback.record.child", job.folder])
    reader = Reader(events)
    last: dict[str, Any] = {"phase": "starting", "modules": []}
    limit: float | None = None
    done = killed = interrupted = False
    while True:
        try:
            code = child.poll()
            for event in reader.new():
                done = _told(event, run, last) or done
                progress(event)
                running = last["phase"] == "running"
                limit = time.monotonic() + seconds + PATIENCE if running and seconds is not None else None
            if code is not None:
                break
            if limit is not None and time.monotonic() > limit:
                child.kill()
                killed = True
            time.sleep(0.05)
        except KeyboardInterrupt:
            # The script was interrupted too; what it had used is checked now. A second time ends everything.
            if interrupted:
                child.kill()
                child.wait()
                run.problems.append("interrupted")
                return last, ""
            interrupted = True
    if done:
        return last, ""
    return last, f"did not stop after {seconds:g} s and was ended" if killed else how(code)


def _told(event: dict[str, Any], run: Run, last: dict[str, Any]) -> bool:
    kind = event["kind"]
    if kind == "entry":
        run.entries.append(from_plain(event["entry"]))
    elif kind == "problem":
        run.problems.append(event["text"])
    elif kind == "note":
        run.notes.append(event["text"])
    elif kind == "declared":
        run.used.update(event["used"])
        run.unused.update(event["unused"])
    elif kind == "phase":
        last.update(event)
        if last["phase"] == "importing":
            last["modules"].append(last["what"])
    return bool(kind == "done")


def how(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"ended at once with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"crashed ({name})"
