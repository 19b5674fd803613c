"""Reports say the same to a terminal, a file and a CI server."""

import io
import json
from dataclasses import replace
from importlib import resources
from xml.etree import ElementTree

import pytest
from json_schema import errors

from pullback.checker.finding import Finding, Report
from pullback.report import github, junit, terminal
from pullback.report import json as report_json
from pullback.report.data import from_data, to_data
from pullback.report.entry import NOT_RECORDED, NOT_RUN, Entry, Run

FAILURE = Finding(
    "derivative",
    "wrong",
    "the gradient of `x` is 2 times the derivative, everywhere",
    "constant-factor",
    edit="divide by 2, then\nlook again: 50%",
    where="`x`",
    measured=1.0,
    claimed=float("nan"),
    reproducer="x0 = tf.constant([1.0])\n# seed 7",
)
TABLE = {"reverse": "yes", "forward": "refused"}
RIGHT = Report("softplus", "right", (Finding("derivative", "right", "agrees"),), 1e-12, "autodiff", TABLE, 7)
WRONG = Report("cube", "wrong", (FAILURE,), None, "differences", {"reverse": "no"}, 7)
OPEN = Report(
    "noisy", "undecided", (Finding("derivative", "undecided", "too rough", reason="noise"),), None, "", {}, 7
)
DECLARED = replace(RIGHT, name="quantise", intent="different on purpose: straight-through")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "train.py")
    entries = [
        Entry(report, "train.py", path, line, "float32[2]", 3)
        for line, report in enumerate((RIGHT, WRONG, OPEN, DECLARED), 10)
    ]
    entries.append(replace(entries[0], signature="float32[2,2]"))
    return Run(7, ("train.py",), entries, [], ["stopped after 3 s"])


def test_entries_survive_the_way_between_processes(run):
    for entry in run.entries:
        again = from_data(json.loads(json.dumps(to_data(entry), allow_nan=False)))
        assert to_data(again) == to_data(entry)
    assert again == run.entries[-1]


def test_plain_text_has_a_row_a_rule_and_a_block_a_failure(run):
    text = terminal.as_text(run)
    *_, table, summary = text.split("\n\n")
    assert summary == "4 rules: 1 right, 1 as declared, 1 wrong, 1 undecided; seed 7"
    assert [line.split()[0] for line in table.splitlines()[2:]] == ["softplus", "cube", "noisy", "quantise"]
    assert "wrong: constant-factor" in table
    assert "as declared" in table
    assert "undecided: noise" in table
    assert "all but forward (refused)" in table
    for said in (
        "cube (train.py:11): wrong at float32[2]",
        "the gradient of `x` is 2 times the derivative",
        "measured 1, claimed nan",
        "divide by 2",
        "x0 = tf.constant([1.0])",
    ):
        assert said in text


def test_a_report_prints_as_the_command_does(run):
    assert str(RIGHT).splitlines() == [
        "rule      verdict  claim           resolution  oracle    can do",
        "--------  -------  --------------  ----------  --------  -------------------------",
        "softplus  right    the derivative  1e-12       autodiff  all but forward (refused)",
        "",
        "seed 7",
    ]
    wrong = replace(WRONG, source="train.py:11")
    assert str(wrong).startswith(terminal.as_text(replace(run, entries=run.entries[1:2])).split(" at ")[0])
    assert "divide by 2" in str(wrong)
    assert str(wrong).index("measured 1") < str(wrong).index("wrong: constant-factor")
    assert repr(wrong) == "<Report of cube: wrong: constant-factor>"


def test_a_report_that_is_not_finished_says_so(run):
    left = Finding("derivative", "note", "it was left after 60 s", reason="budget")
    report = replace(RIGHT, findings=(*RIGHT.findings, left))
    assert "right, not finished" in str(report)
    assert "budget: it was left after 60 s" in str(report)
    run.entries.append(replace(run.entries[0], report=report))
    assert "softplus  right, not finished" in terminal.as_text(run)


HOSTILE = "a\nb\x1b[31m\x1b]0;title\x07\u202e\udc80\x9bc"
SHOWN = r"a\nb\x1b[31m\x1b]0;title\x07\u202e\udc80\x9bc"


def test_hostile_names_are_shown_escaped_everywhere(run):
    failure = replace(FAILURE, sentence=f"{HOSTILE}\n::error::x", reproducer=f"f({HOSTILE!r})")
    report = replace(WRONG, name=HOSTILE, findings=(failure,), intent=HOSTILE)
    plain = json.loads(json.dumps(to_data(Entry(report, HOSTILE, f"/tmp/{HOSTILE}", 3, HOSTILE, 1))))
    run.entries = [from_data(plain)]
    run.problems = []
    texts = {
        "terminal": terminal.as_text(run),
        "json": json.loads(report_json.dumps(run))["rules"][0]["name"],
        "junit": junit.dumps(run),
        "github": "\n".join(github.lines(run)),
        "print": str(report),
    }
    for name, text in texts.items():
        assert SHOWN in text.replace("%3A", ":"), name
        assert all(c.isprintable() or c == "\n" for c in text), name
        assert not [line for line in text.splitlines() if line.startswith("b\\x1b")], name
    report_json.dumps(run).encode()
    assert not [line for line in texts["terminal"].splitlines() if line.startswith("::")]
    assert len(texts["github"].splitlines()) == 1
    assert ElementTree.fromstring(texts["junit"]).find("testsuite/testcase").attrib["name"] == SHOWN


def test_a_stream_that_is_no_terminal_gets_plain_text(run):
    stream = io.StringIO()
    terminal.show(run, stream)
    assert stream.getvalue() == terminal.as_text(run) + "\n"


def test_a_poor_encoding_does_not_break_the_report(run):
    data = io.BytesIO()
    run.entries[1] = replace(run.entries[1], signature="λ × ∂")
    stream = io.TextIOWrapper(data, encoding="ascii")
    terminal.show(run, stream)
    assert b"? ? ?" in data.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_table_with_the_same_words(run):
    long = "x0 = tf.constant([" + ", ".join(["1.0"] * 60) + "])"
    report = replace(WRONG, findings=(replace(FAILURE, reproducer=long),))
    run.entries[1] = replace(run.entries[1], report=report)
    stream = Terminal()
    terminal.show(run, stream)
    for said in ("softplus", "constant-factor", "seed 7"):
        assert said in stream.getvalue()
    # code pastes: no border, no break
    assert f"    {long}\n" in stream.getvalue()


MENDED = replace(WRONG, findings=(FAILURE, Finding("mend", "note", "no edit was found")))
MEANT = replace(WRONG, findings=(replace(FAILURE, cause="surrogate"),))
EXPLAIN, MEND = "next: pullback explain constant-factor", "next: the same command with --mend"


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (WRONG, [EXPLAIN, MEND]),
        (replace(WRONG, findings=(replace(FAILURE, cause=""),)), [MEND]),
        (MENDED, [EXPLAIN]),
        (MEANT, ["next: pullback explain surrogate"]),
        (RIGHT, []),
        (OPEN, []),
    ],
)
def test_a_terminal_is_told_what_to_type_next(run, report, said):
    run.entries = [replace(run.entries[0], report=report)]
    stream = Terminal()
    terminal.show(run, stream)
    *_, told = stream.getvalue().partition("; seed 7\n")
    assert [line[: len(expected)] for line, expected in zip(told.splitlines(), said)] == said
    assert len(told.splitlines()) == len(said)


@pytest.mark.parametrize(
    ("names", "problems", "strict", "code"),
    [
        (["softplus", "quantise"], [], True, 0),
        (["softplus", "noisy"], [], False, 0),
        (["softplus", "noisy"], [], True, 1),
        (["softplus", "cube"], [], False, 1),
        (["cube"], ["it crashed"], False, 2),
        ([], ["gone.py does not exist"], False, 2),
    ],
)
def test_exit_codes(run, names, problems, strict, code):
    run.entries = [e for e in run.entries if e.report.name in names]
    run.problems = problems
    assert run.exit_code(strict=strict) == code


def unchecked(run, name, reason):
    """Give the entries of a run with those of a rule not checked."""
    finding = Finding("run", "undecided", "it closes over a file", reason=reason)
    return [
        replace(e, report=replace(e.report, verdict="undecided", findings=(finding,)))
        if e.report.name == name
        else e
        for e in run.entries
    ]


@pytest.mark.parametrize(("names", "code"), [(["softplus"], 2), (["softplus", "cube"], 1)])
@pytest.mark.parametrize("reason", [NOT_RUN, NOT_RECORDED])
def test_a_rule_that_was_not_checked_is_a_row_and_an_exit_code(run, names, code, reason):
    run.entries = [e for e in unchecked(run, "softplus", reason) if e.report.name in names]
    assert run.exit_code() == code
    assert "not checked: it closes over a file" in terminal.as_text(run)
    assert "1 not checked" in terminal.as_text(run)
    assert "undecided;" not in terminal.as_text(run)


@pytest.mark.parametrize(("reason", "code"), [(NOT_RUN, 0), (NOT_RECORDED, 2)])
def test_a_call_beside_one_that_is_right_counts_if_it_was_not_recorded(run, reason, code):
    right = [e for e in run.entries if e.report.name == "softplus"]
    run.entries = [*right, *(e for e in unchecked(run, "softplus", reason) if e.report.name == "softplus")]
    assert run.exit_code() == code


def schema():
    return json.loads((resources.files("pullback.report") / "schema.json").read_text(encoding="utf-8"))


def test_json_follows_its_schema(run):
    data = json.loads(report_json.dumps(run))
    assert errors(data, schema()) == []
    assert data["rules"][1]["findings"][0]["claimed"] == "nan"
    assert data["exit_code"] == 1


def test_the_schema_refuses_what_it_does_not_know(run):
    data = json.loads(report_json.dumps(run))
    data["rules"][0]["surprise"] = 1
    del data["rules"][1]["verdict"]
    data["exit_code"] = 7
    assert len(errors(data, schema())) == 3


def test_junit_has_a_case_a_rule(run):
    run.problems = ["train.py crashed \x1b[0m \0"]
    suite = ElementTree.fromstring(junit.dumps(run)).find("testsuite")
    assert suite.attrib["tests"] == "5"
    assert [suite.attrib[name] for name in ("failures", "errors", "skipped")] == ["1", "1", "1"]
    failure = suite.find("testcase[@name='cube']/failure")
    assert failure.attrib["type"] == "constant-factor"
    assert "divide by 2" in failure.text
    strict = ElementTree.fromstring(junit.dumps(run, strict=True)).find("testsuite")
    assert strict.attrib["failures"] == "2"


def test_github_lines_point_at_the_rule(run):
    run.problems = ["100% gone"]
    wrong, undecided, problem = github.lines(run)
    assert wrong.startswith("::error file=train.py,line=11,title=cube%3A wrong (constant-factor)::")
    assert wrong.endswith("divide by 2, then%0Alook again: 50%25")
    assert undecided.startswith("::warning file=train.py,line=12,")
    assert problem == "::error title=pullback check::100%25 gone"
