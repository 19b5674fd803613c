"""Edits are written one by one and kept if a new check confirms them, never over what somebody else wrote."""

import os
import signal
import subprocess

import pytest

from pullback.checker.finding import Finding, Report
from pullback.mend.patch import Mending, Patch, Span
from pullback.mend.write import Writer
from pullback.report.entry import Entry, Run

TEXT = """def first(x):
    def grad(dy):
        return dy * x  # größe

    return x * x, grad


def second(x):
    def grad(dy):
        return dy

    return 3 * x, grad
"""
EDITS = {
    "first": ("dy * x ", "dy * (\n            2 * x\n        ) "),
    "second": ("return dy\n", "return 3 * dy\n"),
}


def report_of(name, verdict, mending=None):
    notes = (Finding("mend", "note", "words"),) if mending else ()
    findings = (Finding("derivative", verdict, "told"), *notes)
    return Report(name, verdict, findings, None, "", {}, 0, mending=mending)


class Project:
    """A file with two wrong rules, the run that found their edits, and the checker as its text decides."""

    def __init__(self, folder, text=TEXT, encoding="utf-8", edits=EDITS):
        self.path = folder / "rules.py"
        self.path.write_bytes(text.encode(encoding))
        self.edits = edits
        entries = []
        for name, (old, new) in edits.items():
            patch = Patch(
                str(self.path),
                text,
                (Span(text.index(old), text.index(old) + len(old), new),),
                name,
                ("p",),
                2,
            )
            entries.append(self.entry(name, text, Mending((patch,))))
        self.run = Run(0, ("rules.py",), entries)
        self.checks = 0

    def entry(self, name, text, mending=None):
        verdict = "right" if self.edits[name][1].strip() in text else "wrong"
        line = text[: text.index(f"def {name}")].count("\n") + 1
        return Entry(
            report_of(name, verdict, mending), "rules.py", str(self.path), line, "", 1, f"rules.{name}"
        )

    def recheck(self, targets):
        self.checks += 1
        assert targets == ["rules.py"]
        text = self.path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        return Run(0, ("rules.py",), [self.entry(name, text) for name in self.edits])

    def write(self, recheck=None, uncommitted=False):
        Writer(self.run, recheck or self.recheck, uncommitted=uncommitted).work()
        return self.run.notes

    @property
    def text(self):
        return self.path.read_bytes()

    @property
    def verdicts(self):
        return {entry.report.name: entry.report.verdict for entry in self.run.entries}


def made(text, *names, edits=EDITS):
    for name in names:
        text = text.replace(*edits[name])
    return text


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_each_edit_is_written_and_checked_before_the_next(project):
    notes = project.write()
    assert project.text == made(TEXT, "first", "second").encode()
    assert project.checks == 2
    assert [note.split("rules.py ")[1] for note in notes] == [
        "is written (first: first); checked again: right", "is written (second: second); checked again: right"
    ]  # fmt: skip
    assert project.verdicts == {"first": "right", "second": "right"}
    assert project.run.exit_code() == 0
    told = [f.sentence for f in project.run.entries[0].report.findings if f.probe == "mend"]
    assert told == ["words"], "a rule that was mended keeps the words of its edit"


def test_an_edit_that_the_new_check_does_not_confirm_is_taken_back(project):
    def recheck(targets):
        again = project.recheck(targets)
        if project.checks == 1:
            again.entries[0] = Entry(report_of("first", "wrong"), "rules.py", str(project.path), 1)
        return again

    notes = project.write(recheck)
    assert project.text == made(TEXT, "second").encode()
    assert "is as it was (first: first): checked again, it is wrong" in notes[0]
    assert project.verdicts == {"first": "wrong", "second": "right"}
    assert project.run.exit_code() == 1


def test_an_edit_that_breaks_another_rule_is_taken_back(project):
    def recheck(targets):
        again = project.recheck(targets)
        again.entries.append(Entry(report_of("third", "wrong"), "rules.py", str(project.path), 90))
        return again

    notes = project.write(recheck)
    assert project.text == TEXT.encode()
    assert "with it, third is wrong" in notes[0]


@pytest.mark.parametrize(
    ("again", "said"),
    [(Run(0, problems=["it raised"]), "the new check failed: it raised"), (Run(0), "does not find the rule")],
)
def test_a_check_that_says_nothing_confirms_nothing(project, again, said):
    assert said in project.write(lambda targets: again)[0]
    assert project.text == TEXT.encode()


def test_an_interrupt_takes_back_what_is_not_confirmed_and_keeps_the_rest(project):
    def recheck(targets):
        again = project.recheck(targets)
        if project.checks == 2:
            again.signal = signal.SIGINT
        return again

    notes = project.write(recheck)
    assert project.text == made(TEXT, "first").encode()
    assert "the new check was interrupted" in notes[1]
    assert project.run.exit_code() == 130


def test_a_signal_between_two_edits_ends_the_writing(project):
    def recheck(targets):
        os.kill(os.getpid(), signal.SIGTERM)
        return project.recheck(targets)

    project.write(recheck)
    assert project.text == made(TEXT, "first").encode()
    assert project.run.signal == signal.SIGTERM


def test_what_somebody_else_wrote_meanwhile_stays(project):
    def recheck(targets):
        project.path.write_text("mine")
        return Run(0)

    notes = project.write(recheck)
    assert project.text == b"mine"
    assert "could not be put back: it has changed since it was checked" in notes[0]


def test_a_file_that_changed_since_it_was_imported_is_left_alone(project):
    project.path.write_text(f"# new\n{TEXT}", encoding="utf-8")
    notes = project.write()
    assert project.text == f"# new\n{TEXT}".encode()
    assert all("is not written" in note and "changed since it was imported" in note for note in notes)
    assert project.checks == 0


def test_a_file_that_is_gone_is_left_gone(project):
    project.path.unlink()
    assert "cannot be read any more" in project.write()[0]
    assert not project.path.exists()


def test_a_read_only_file_is_left_alone(project):
    project.path.chmod(0o444)
    assert "it is read-only" in project.write()[0]
    assert project.text == TEXT.encode()


def test_two_edits_of_one_place_are_not_mixed(tmp_path):
    text = "def first(x): return x, lambda dy: x\ndef second(x): return x, 1\n"
    edits = {"first": ("lambda dy: x", "lambda dy: dy"), "second": ("dy: x", "dy: 2 * dy")}
    project = Project(tmp_path, text, edits=edits)
    notes = project.write()
    assert project.text == made(text, "first", edits=edits).encode()
    assert "another edit changes the same place" in notes[1]


def test_one_edit_of_two_rules_is_written_once(tmp_path):
    text = "def first(x): ...\ndef second(x): ...\ndef shared(dy): return dy\n"
    edits = dict.fromkeys(("first", "second"), ("return dy\n", "return 2 * dy\n"))
    project = Project(tmp_path, text, edits=edits)
    notes = project.write()
    assert project.text == made(text, "first", edits=edits).encode()
    assert all("checked again: right" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TEXT, "utf-8-sig"),
        (f"# coding: latin-1\n{TEXT}", "latin-1"),
        (TEXT.replace("\n", "\r\n"), "utf-8"),
        (TEXT.replace("    ", "\t"), "utf-8"),
    ],
)
def test_bytes_that_are_not_edited_stay(tmp_path, text, encoding):
    edits = {"second": ("3 * x", "3.0 * x")}
    project = Project(tmp_path, text, encoding, edits)
    project.write()
    assert project.text == text.replace(*edits["second"]).encode(encoding)


def test_an_edit_that_the_encoding_cannot_hold_is_not_written(tmp_path):
    text = f"# coding: latin-1\n{TEXT}"
    project = Project(tmp_path, text, "latin-1", {"second": ("3 * x", "λ * x")})
    assert "its encoding, iso-8859-1, cannot hold the edit" in project.write()[0]
    assert project.text == text.encode("latin-1")


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def committed(folder):
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all")


def test_a_committed_file_is_written_also_for_its_second_rule(project, tmp_path):
    committed(tmp_path)
    project.write()
    assert project.text == made(TEXT, "first", "second").encode()


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("changed", "uncommitted changes"), ("staged", "uncommitted changes"),
        ("untracked", "git does not keep it"), ("ignored", "git does not keep it"),
    ],
)  # fmt: skip
def test_what_git_could_not_bring_back_is_left_alone_unless_told(tmp_path, state, said):
    inside = tmp_path / "a folder"
    inside.mkdir()
    (inside / "rules.py").write_text("old")
    (tmp_path / ".gitignore").write_text("*/rules.py\n" if state == "ignored" else "")
    if state in ("changed", "staged"):
        committed(tmp_path)
    else:
        git(tmp_path, "init", "-q")
    project = Project(inside)
    if state == "staged":
        git(tmp_path, "add", ".")
    notes = project.write()
    assert said in notes[0]
    assert "--allow-uncommitted" in notes[0]
    assert project.text == TEXT.encode()
    assert project.verdicts == {"first": "wrong", "second": "wrong"}
    project.write(uncommitted=True)
    assert project.text == made(TEXT, "first", "second").encode()


def test_a_repository_that_git_cannot_read_is_told(project, tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "config").write_text("[broken")
    assert "git does not say whether it is committed" in project.write()[0]
    assert project.text == TEXT.encode()
