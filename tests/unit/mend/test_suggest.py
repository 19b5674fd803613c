"""What is said of an edit is what was proven of it; the verdict stands whatever the search does."""

import json
import sys
from dataclasses import replace
from types import ModuleType

import pytest

from pullback.checker.cause import causes
from pullback.checker.finding import Finding, Report
from pullback.checker.settings import Settings
from pullback.mend import suggest
from pullback.mend.edit import kinds
from pullback.mend.edits import fill
from pullback.mend.patch import Mending, Patch, Span
from pullback.report import github, junit
from pullback.report import json as report_json
from pullback.report.block import verdict
from pullback.report.entry import Entry, Run
from pullback.report.findings import run_of
from pullback.report.html import page
from pullback.report.terminal import as_text

FAILURE = Finding("derivative", "wrong", "the gradient is wrong", cause="sign", edit="change the sign")
WRONG = Report("square", "wrong", (FAILURE,), None, "", {}, 0)
UNNAMED = replace(WRONG, findings=(replace(FAILURE, cause=None, edit=""),))
TEXT = "def square(x):\r\n    # größe\u00a0\r\n    return x * x, lambda dy: dy * x\r\n"
AT = TEXT.rindex("x\r")
POINTS = ("float32[3], the given point", "float32[2,5], another shape")


def patch_of(new, words="a factor `2` is missing (line 3)", file="rules.py"):
    return Patch(file, TEXT, (Span(AT, AT + 1, new),), words, POINTS, 2)


TWICE, SUM = patch_of("2 * x"), patch_of("(x + x)", "the term `x` is missing (line 3)")
DIFF = (
    "--- a/rules.py\n+++ b/rules.py\n@@ -1,3 +1,3 @@\n def square(x):\r\n     # größe\u00a0\r\n"
    "-    return x * x, lambda dy: dy * x\r\n+    return x * x, lambda dy: dy * 2 * x\r\n"
)
ASKED = Settings(mend=0.5)


@pytest.fixture
def search(monkeypatch):
    """Let the search be a function."""

    def becomes(function):
        module = ModuleType("pullback.mend.search")
        module.mend = function
        monkeypatch.setitem(sys.modules, "pullback.mend.search", module)

    return becomes


def mended(report=WRONG, settings=ASKED):
    return suggest.mended(report, len, (1,), {"k": 2}, settings)


def said(report):
    return [f.sentence for f in report.findings if f.probe == "mend"]


# ── the search, and what may happen to it ────────────────────────────────────────────────────────────────


def test_the_search_is_given_the_call_its_report_and_its_budget(search):
    heard = []

    def mend(function, args, kwargs, report, *, budget, domain):
        heard.append((function, args, kwargs, report, budget, domain))
        return Mending((TWICE,))

    search(mend)
    report = suggest.mended(WRONG, len, (1,), {"k": 2}, ASKED, domain=(0, 1))
    assert heard == [(len, (1,), {"k": 2}, WRONG, 0.5, (0, 1))]
    assert report.patch == DIFF
    assert report.mending == Mending((TWICE,))
    assert report.verdict == "wrong"


@pytest.mark.parametrize(
    ("report", "settings"),
    [(WRONG, Settings()), (replace(WRONG, verdict="right"), ASKED)],
    ids=["not asked", "right"],
)
def test_nothing_is_searched_that_nobody_asked_for(search, report, settings):
    search(lambda *a, **k: pytest.fail("searched"))
    assert mended(report, settings) is report


def raising(error):
    def mend(*args, **kwargs):
        raise error

    return mend


@pytest.mark.parametrize(
    ("mend", "sentence"),
    [
        (raising(ZeroDivisionError("by\nzero")), "no edit: the search failed (ZeroDivisionError: by)"),
        (raising(KeyboardInterrupt()), "no edit: the search was interrupted"),
        (raising(SystemExit(3)), "no edit: the search failed (SystemExit: 3)"),
    ],
)
def test_the_verdict_stands_without_the_edit(search, mend, sentence):
    search(mend)
    report = mended()
    assert (report.verdict, report.causes, report.patch, said(report)) == ("wrong", ["sign"], "", [sentence])
    assert report.findings[0] == FAILURE


def test_what_looks_meant_is_not_searched(search):
    search(lambda *a, **k: pytest.fail("searched"))
    meant = replace(WRONG, findings=(replace(FAILURE, cause="surrogate"),))
    assert said(mended(meant)) == ["no edit: it looks different on purpose: declare it"]


def test_the_last_resort_is_asked_for_where_no_edit_was_found(search, monkeypatch):
    monkeypatch.setattr(suggest, "resort", lambda *a: "delete the rule")
    search(lambda *a, **k: Mending((TWICE,)))
    assert said(mended()) == [TWICE.words]
    search(lambda *a, **k: Mending(refused="it prints"))
    assert said(mended()) == ["no edit: it prints", "the last resort: delete the rule"]


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_block_has_the_cause_the_edit_the_proof_and_a_diff_to_copy():
    text = str(suggest.noted(WRONG, Mending((TWICE,))))
    assert text.startswith(
        "square: wrong\n"
        "\n"
        "  sign: the gradient is wrong\n"
        "  edit: change the sign\n"
        "\n"
        "  mend: a factor `2` is missing (line 3)\n"
        "  this edit makes it right at all 2 points that were checked, at first and second order:\n"
        "    float32[3], the given point\n"
        "    float32[2,5], another shape\n"
        "  the cause that was measured: sign\n"
        "\n"
        "--- a/rules.py\n"
        "+++ b/rules.py\n"
    )
    assert "\n+    return x * x, lambda dy: dy * 2 * x\r\n" in text


def test_an_edit_names_the_bug_where_no_cause_does():
    report = suggest.noted(UNNAMED, Mending((TWICE,)))
    assert verdict(report) == "wrong: a factor `2` is missing (line 3)"
    assert verdict(suggest.noted(WRONG, Mending((TWICE,)))) == "wrong: sign"
    assert "the cause that was measured" not in str(report)


def test_a_cause_and_an_edit_that_disagree_are_said_to_in_the_terminal_the_json_and_the_page():
    known = {c.SLUG for c in causes()}
    assert all(set(getattr(kind, "EXPLAINS", ())) <= known for kind in kinds())
    assert set(fill.FACTOR) | set(fill.TERM) <= known
    same, other = (replace(TWICE, explains=slugs) for slugs in (("sign",), ("constant-factor",)))
    apart = "the cause that was measured, sign, and this edit do not name the same bug: read both"
    assert apart not in str(suggest.noted(WRONG, Mending((same,))))
    report = suggest.noted(WRONG, Mending((other,)))
    run = Run(0, ("rules.py",), [Entry(report, "rules.py", "/p/rules.py", 1, "float32[3]", 1)])
    assert all(apart in text for text in (str(report), report_json.dumps(run), page(run)))


def test_one_point_and_first_order_are_said_so():
    report = suggest.noted(WRONG, Mending((replace(TWICE, points=POINTS[:1] * 2, order=1),)))
    assert "right at the only point that was checked, at first order:" in str(report)


def test_of_two_edits_both_are_shown_the_smaller_one_first():
    report = suggest.noted(WRONG, Mending((TWICE, SUM)))
    assert said(report) == [TWICE.words, f"or: {SUM.words}"]
    text = str(report)
    assert text.index("dy * 2 * x") < text.index("or: the term") < text.index("dy * (x + x)")
    assert report.patch == DIFF
    assert report.findings[0].patch == DIFF


def test_no_edit_says_what_was_tried():
    found = Mending(
        tried=213, seconds=4.13, edits=("other names", "signs"), instead="delete the rule: costs 2x"
    )
    text = str(suggest.noted(WRONG, found))
    expected = (
        "  mend: no edit was found that makes it right; 213 were tried in 4.1 s of CPU time\n"
        "  of these kinds:\n"
        "    other names\n"
        "    signs\n"
        "\n"
        "  mend: the last resort: delete the rule: costs 2x"
    )
    assert expected in text
    assert suggest.noted(WRONG, found).patch == ""
    spent = suggest.noted(WRONG, replace(found, spent=True, instead=None)).findings[-1]
    assert spent.sentence.endswith("in 4.1 s of CPU time, which is all that it was given")
    assert spent.where.endswith("\na larger budget may find more: --mend-budget, mend_budget=")
    assert said(suggest.noted(WRONG, Mending(refused="it prints"))) == ["no edit: it prints"]


# ── every form of a report ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run():
    report = suggest.noted(WRONG, Mending((TWICE, SUM)))
    return Run(0, ("rules.py",), [Entry(report, "rules.py", "/p/rules.py", 1, "float32[3]", 1)])


def test_the_json_has_a_diff_that_applies_and_is_read_back_as_it_was(run):
    document = json.loads(report_json.dumps(run))
    findings = document["rules"][0]["findings"]
    assert [f["patch"] for f in findings][:2] == [DIFF, DIFF]
    again, problems = run_of(document)
    assert problems == []
    assert again.entries[0].report.findings == run.entries[0].report.findings


def test_the_page_shows_each_edit_once_with_its_proof(run):
    text = page(run)
    assert text.count("dy * 2 * x") == 1
    assert text.count("dy * (x + x)") == 1
    assert "right at all 2 points that were checked" in text
    assert 'class="failure mend"' in text


def test_an_annotation_carries_the_suggestion(run):
    (line,) = github.lines(run)
    assert line.startswith(
        "::error file=/p/rules.py,line=1,title=square%3A wrong (sign)::the gradient is wrong"
    )
    assert "%0A%0Aa factor `2` is missing (line 3)%0Athis edit makes it right at all 2 points" in line
    assert "%0A--- a/rules.py%0A+++ b/rules.py%0A" in line
    assert "\n" not in line


def test_the_terminal_and_junit_say_it_too(run):
    for text in (as_text(run), junit.dumps(run)):
        assert "mend: a factor `2` is missing (line 3)" in text
        assert "+    return x * x, lambda dy: dy * 2 * x" in text


def test_what_a_terminal_would_obey_is_escaped():
    evil = replace(TWICE, text=TEXT.replace("größe", "\x1b[31m \r red"), words="\x1b]0;title\x07")
    spans = (Span(len("def "), len("def "), "_"),)
    report = suggest.noted(WRONG, Mending((replace(evil, spans=spans),)))
    assert all(c.isprintable() or c in "\n\r" for c in str(report))
    assert str(report).replace("\r\n", "").count("\r") == 0


def test_a_mended_rule_says_so():
    note = suggest.noted(WRONG, Mending((TWICE,))).findings[-1]
    assert verdict(replace(WRONG, verdict="right", findings=(note,))) == "right, mended"
