"""Writing edits into files: one rule after the other, each kept only if a new check finds it right.

A file holds its old text or a new one, never a part: it is replaced whole. An edit that is not confirmed,
because the check fails or is interrupted, is taken back. A file is left alone if git could not bring its text
back, if it is read-only, or if its text is not the one that was verified.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pullback import atomic
from pullback.checker.finding import Finding
from pullback.mend.diff import edited
from pullback.mend.patch import Patch, Span
from pullback.mend.source import read
from pullback.record.job import Options
from pullback.record.launch import Progress, launch_all
from pullback.record.process import signals
from pullback.report.block import mendings
from pullback.report.entry import Entry, Run, relative, worst

NEWLINE = re.compile(r"\r\n|\r|\n")
Key = tuple[str, int, str]  # file, line and name of a rule, before anything was written


class RefusedError(Exception):
    """A file that is not written; the text says why."""


@dataclass
class File:
    """Hold the text of a file before anything was written, and what has been written since."""

    path: str
    text: str
    encoding: str
    spans: list[Span] = field(default_factory=list)

    @classmethod
    def of(cls, path: str, *, uncommitted: bool) -> File:
        """Read a file that may be written."""
        try:
            mode = os.stat(path).st_mode
            text, encoding = read(path)
        except (OSError, SyntaxError, ValueError) as error:
            said = getattr(error, "strerror", None) or "it is no Python"
            raise RefusedError(f"it cannot be read any more ({said})") from None
        if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
            raise RefusedError("it is read-only")
        if not uncommitted:
            _require_committed(path)
        return cls(path, text, encoding)

    @property
    def now(self) -> str:
        """Give the text that it holds now."""
        return edited(self.text, self.spans)

    def with_spans(self, spans: Sequence[Span]) -> list[Span]:
        """Give what is written together with more."""
        found = sorted({*self.spans, *spans}, key=lambda s: (s.start, s.stop))
        if any(a.stop > b.start or a.start == b.start for a, b in itertools.pairwise(found)):
            raise RefusedError("another edit changes the same place: check again for this one")
        return found

    def put(self, spans: list[Span]) -> None:
        """Write the text with other spans replaced; refuse a file that somebody else has changed."""
        try:
            same = read(self.path)[0] == self.now
        except (OSError, SyntaxError, ValueError):
            same = False
        if not same:
            raise RefusedError("it has changed since it was checked")
        try:
            atomic.replace(self.path, edited(self.text, spans).encode(self.encoding))
        except UnicodeEncodeError:
            raise RefusedError(f"its encoding, {self.encoding}, cannot hold the edit") from None
        except OSError as error:
            raise RefusedError(f"it cannot be written: {error.strerror}") from None
        self.spans = spans

    def line(self, line: int) -> int:
        """Say where a line stands now."""
        starts = [0, *(m.end() for m in NEWLINE.finditer(self.text))]
        at = starts[min(line, len(starts)) - 1]
        above = [s for s in self.spans if s.start < at]
        return line + sum(_newlines(s.new) - _newlines(self.text[s.start : s.stop]) for s in above)


class Writer:
    """Write the edits of a run, and keep the run up to date."""

    def __init__(self, run: Run, recheck: Callable[[Sequence[str]], Run], *, uncommitted: bool) -> None:
        self.run = run
        self.recheck = recheck
        self.uncommitted = uncommitted
        self.files: dict[str, File] = {}
        self.mended: dict[Key, list[Finding]] = {}
        self.wrong = {_key(group[0]) for group in run.rules() if worst(group).report.verdict == "wrong"}

    def work(self) -> None:
        """Write one edit after the other, until the last or a signal."""
        with signals() as heard:
            for group in self.run.rules():
                entry = next((e for e in group if e.report.mending and e.report.mending.patches), None)
                if entry is None or entry.report.mending is None:
                    continue
                patch = entry.report.mending.patches[0]
                said = self._one(entry, patch, list(dict.fromkeys(e.target for e in group)))
                self.run.notes.append(f"{relative(patch.file)} {said}")
                if heard and not self.run.signal:
                    self.run.signal = heard[0]
                if self.run.signal:
                    return

    def _one(self, entry: Entry, patch: Patch, targets: list[str]) -> str:
        """Write one edit, check again, and say what became of it."""
        about = f"{entry.report.name}: {patch.words}"
        try:
            file = self._file(patch)
            before, spans = file.spans, file.with_spans(patch.spans)
            if spans != before:
                file.put(spans)
        except RefusedError as refusal:
            return f"is not written ({about}): {refusal}"
        again = self.recheck(targets)
        why = self._failing(again, _key(entry))
        if not why:
            self.wrong.discard(_key(entry))
            self.mended[_key(entry)] = mendings(entry.report)
            self._take(again, targets)
            return f"is written ({about}); checked again: right"
        if again.signal:
            self.run.signal = again.signal
        try:
            file.put(before)
        except RefusedError as refusal:
            return f"was written ({about}), but {why}; it could not be put back: {refusal}"
        return f"is as it was ({about}): {why}"

    def _file(self, patch: Patch) -> File:
        path = os.path.realpath(patch.file)
        if path not in self.files:
            self.files[path] = File.of(path, uncommitted=self.uncommitted)
        if self.files[path].text != patch.text:
            raise RefusedError("it has changed since it was imported")
        return self.files[path]

    def _failing(self, again: Run, key: Key) -> str:
        """Say why a new check does not confirm an edit; nothing if it does."""
        if again.signal:
            return "the new check was interrupted"
        if problems := [p for p in again.problems if p not in self.run.problems]:
            return f"the new check failed: {problems[0]}"
        verdicts = {_key(group[0]): worst(group).report.verdict for group in again.rules()}
        found = verdicts.get(self._now(key))
        if found != "right":
            return f"checked again, it is {found}" if found else "the new check does not find the rule"
        known = {self._now(k) for k in self.wrong}
        broken = [k[2] for k, verdict in verdicts.items() if verdict == "wrong" and k not in known]
        return f"with it, {', '.join(broken)} is wrong" if broken else ""

    def _now(self, key: Key) -> Key:
        file = self.files.get(os.path.realpath(key[0])) if key[0] else None
        return (key[0], file.line(key[1]), key[2]) if file else key

    def _take(self, again: Run, targets: list[str]) -> None:
        """Let the run hold what is true now; a rule that was mended keeps the words of its edit."""
        notes = {self._now(key): found for key, found in self.mended.items()}
        entries = [e for e in self.run.entries if e.target not in targets]
        for e in again.entries:
            findings = (*e.report.findings, *notes.get(_key(e), ()))
            entries.append(replace(e, report=replace(e.report, findings=findings)))
        order = {target: i for i, target in enumerate(self.run.targets)}
        self.run.entries = sorted(entries, key=lambda e: order.get(e.target, len(order)))


def write(
    run: Run, targets: Sequence[str], progress: Progress, options: Options, *, uncommitted: bool = False
) -> bool:
    """Write the smallest edit of every rule of a run, and let the run hold what is true afterwards.

    Tells whether a file has changed.
    """
    spelled = dict(zip(run.targets, targets))
    checking = replace(options, settings=replace(options.settings, mend=0.0), repeated=True)

    def recheck(names: Sequence[str]) -> Run:
        again = Run(seed=run.seed, targets=tuple(names))
        launch_all([spelled[name] for name in names], again, progress, checking)
        return again

    writer = Writer(run, recheck, uncommitted=uncommitted)
    writer.work()
    return bool(writer.mended)


def _key(entry: Entry) -> Key:
    return entry.path, entry.line, entry.report.name


def _newlines(text: str) -> int:
    return len(NEWLINE.findall(text))


def _require_committed(path: str) -> None:
    """Refuse a file whose text git could not bring back; one outside of every repository is the user's."""
    command = ["git", "-C", os.path.dirname(path), "status", "--porcelain", "--ignored", "--", path]
    # In English, and without a lock that somebody else may need.
    spoken = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(command, capture_output=True, env=spoken, check=False)
    except OSError:
        return  # no git
    state, said = (text.decode(errors="replace").strip("\n") for text in (done.stdout, done.stderr))
    if done.returncode and "not a git repository" not in said:
        why = said.splitlines()[:1] or [f"exit status {done.returncode}"]
        raise RefusedError(f"git does not say whether it is committed ({why[0]})")
    if state[:2] in ("??", "!!"):
        raise RefusedError("git does not keep it: commit it, or --allow-uncommitted")
    if state:
        raise RefusedError("it has uncommitted changes: commit them, or --allow-uncommitted")
