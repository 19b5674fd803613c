"""The command with --mend: a search that crashes or hangs costs its edit alone, and files are written."""

import signal
from dataclasses import asdict, replace

import pytest
from click.testing import CliRunner

from pullback import cli
from pullback.checker.finding import Finding, Report
from pullback.checker.settings import MEND, Settings
from pullback.mend.patch import Mending, Patch, Span
from pullback.record.events import Events, Reader
from pullback.record.found import Found, Purse
from pullback.record.job import Job, Options
from pullback.record.launch import Part, _over
from pullback.record.target import Target
from pullback.report.entry import Entry
from pullback.report.printable import cleaned

PATCH = Patch("/p/rules.py", "x\r\n", (Span(0, 1, "größe"),), "words", ("a point",), 2)
REPORT = Report("square", "wrong", (Finding("derivative", "wrong", "told"),), None, "", {}, 0)
LOCATION = ("/p/rules.py", 3, "square", "")
LAST = {"phase": "mending", "what": "square", "location": LOCATION, "budget": 10.0, "modules": []}


def part_of(**options):
    return Part("rules.py", Options(Settings(), **options), lambda event: None, Purse(None))


# ── the search in its process ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("late", "no edit: the search did not end within its budget of 10 s, and was left"),
        ("crashed (SIGSEGV)", "no edit: the search crashed (SIGSEGV)"),
    ],
)
def test_a_search_that_ends_its_process_loses_its_edit_alone(ended, said):
    part = part_of()
    part.found.order = (LOCATION,)
    part.found.partial[LOCATION] = Entry(REPORT, "rules.py", *LOCATION[:2])
    target = Target("rules.py", "script", "/p/rules.py")
    following = part._next(Job(target, "", part.options), LAST, ended)
    (entry,) = part.found.entries[LOCATION]
    assert entry.report.verdict == "wrong"
    assert [f.sentence for f in entry.report.findings] == ["told", said]
    assert part.found.problems == [], "the target could be run"
    assert set(following.done) == {LOCATION}, "the next child goes on behind it"


def test_edits_travel_as_they_are_and_words_as_they_are_printed(tmp_path):
    reader = Reader(str(tmp_path / "events"))
    report = replace(
        REPORT, mending=Mending((PATCH,)), findings=(replace(REPORT.findings[0], patch="a\r\n"),)
    )
    Events(str(tmp_path / "events")).entry(Entry(report, "rules.py"), location=LOCATION)
    (raw,) = reader.new()
    reader.close()
    found = Found(Purse(None))
    found.told(cleaned(raw), raw)
    (entry,) = found.entries[LOCATION]
    assert entry.report.mending.patches == (PATCH,)
    assert entry.report.patch == "a\r\n"


def test_the_settings_of_a_search_travel_with_the_job():
    options = Options(Settings(mend=3.0, folder="/here"), repeated=True)
    again = Job.loads(Job(Target("a.py", "script", "/a.py"), "", options).dumps())
    assert again.options == options


def test_an_interrupt_is_for_a_script_that_runs_first_and_not_for_one_that_is_repeated():
    for repeated in (False, True):
        part = part_of(repeated=repeated)
        part.processes = {
            type("P", (), {"interrupt": lambda self: None})(): {"phase": "running", "again": False}
        }
        assert _over([signal.SIGINT], [part]) is repeated


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def asked(monkeypatch):
    """Give what the command would do."""
    heard = {}

    def check_targets(targets, options, **outputs):
        heard.update(asdict(options.settings), **outputs)
        return 0

    def ask(*arguments):
        monkeypatch.setattr(cli, "check_targets", check_targets)
        done = CliRunner().invoke(cli.command(), ["check", "rules.py", *arguments], obj=())
        return done, heard

    return ask


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [([], 0.0), (["--mend"], MEND), (["--mend", "--mend-budget", "3"], 3.0), (["--mend-budget", "3"], 0.0)],
)
def test_a_search_is_asked_for_and_has_a_budget(asked, tmp_path, monkeypatch, arguments, seconds):
    monkeypatch.chdir(tmp_path)
    done, heard = asked(*arguments)
    assert done.exit_code == 0, done.output
    assert (heard["mend"], heard["folder"], heard["write"]) == (seconds, str(tmp_path), False)


def test_the_configuration_may_ask_for_it(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pullback.toml").write_text("mend = true\nmend_budget = 2.5\n")
    assert asked()[1]["mend"] == 2.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--write"], "--write needs --mend"),
        (["--mend", "--mend-budget", "0"], "--mend-budget"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked, arguments, said):
    done, _ = asked(*arguments)
    assert done.exit_code == 2
    assert said in done.output
