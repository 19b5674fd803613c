"""The page holds what was found, in a form that a parser reads, and nothing of a user's is markup."""

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from test_reports import DECLARED, FAILURE, OPEN, RIGHT, WRONG

from pullback import cli
from pullback.checker.settings import Settings
from pullback.record.job import Options
from pullback.report import html
from pullback.report import json as report_json
from pullback.report.entry import Entry, Run
from pullback.report.page import page

VOID = {"meta", "link", "input", "wbr"}


class Page(HTMLParser):
    """Read a page: its elements with their attributes, and the text of each; refuse what is not nested."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.stack.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.stack:
            element["text"] += data

    def all(self, tag, kind=""):
        wanted = set(kind.split())
        return [e for e in self.elements if e["tag"] == tag and wanted <= set((e.get("class") or "").split())]

    def texts_of(self, tag, kind=""):
        return [" ".join(e["text"].split()) for e in self.all(tag, kind)]


def run_of(*reports, target="train.py"):
    entries = [Entry(r, target, f"/p/{target}", i, "float32[2]", 3) for i, r in enumerate(reports, 10)]
    return Run(7, (target,), entries, [], ["stopped after 3 s"])


def written(run):
    """Write a run as the command does: through JSON."""
    return page(json.loads(report_json.dumps(run)))


@pytest.fixture(scope="module")
def shown():
    wrong = replace(WRONG, code="def cube(x):\n    return x", docstring="Cube it.")
    text, said = written(run_of(RIGHT, wrong, OPEN, DECLARED))
    assert said == []
    return Page(text)


def test_the_page_has_a_row_and_a_card_a_rule_and_what_is_wrong_first(shown):
    rows = shown.all("tr")[1:5]
    assert [row["data-word"] for row in rows] == ["wrong", "undecided", "as declared", "right"]
    cards = shown.all("details", "rule")
    assert [card["data-rule"] for card in cards] == ["1", "2", "3", "4"]
    assert [("open" in card) for card in cards] == [True, True, False, False]
    assert [e["href"] for e in shown.all("a")] == [f"#rule-{i}" for i in (1, 2, 3, 4)]
    ids = {e["id"] for e in shown.elements if e.get("id")}
    assert {f"rule-{i}" for i in (1, 2, 3, 4)} <= ids


def test_the_page_counts_the_verdicts(shown):
    assert shown.texts_of("button", "tally") == ["1 wrong", "1 undecided", "1 as declared", "1 right"]
    assert "stopped after 3 s" in shown.texts_of("li")


def test_a_failure_has_its_sentence_numbers_edit_code_and_source(shown):
    (card,) = [c for c in shown.all("details", "rule") if c["data-rule"] == "1"]
    for said in (
        "the gradient of x is 2 times the derivative, everywhere",
        "claimednan",
        "measured1",
        "look again: 50%",
        "x0 = tf.constant([1.0])\n# seed 7",
        "def cube(x):\n    return x",
        "Cube it.",
        "differences",
    ):
        assert said in card["text"].replace("\n        ", ""), said


def test_every_code_and_sentence_can_be_copied(shown):
    assert len(shown.all("pre")) >= 2
    places = [*shown.all("div", "code"), *shown.all("article", "failure")]
    assert len(shown.all("button", "copy")) == len(places)


def test_a_patch_is_a_diff_line_by_line():
    patch = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-return dy\n+return 2 * dy\n around"
    text, _ = written(run_of(replace(WRONG, findings=(replace(FAILURE, patch=patch, smallest="x0 = [1]"),))))
    shown = Page(text)
    (diff,) = shown.all("pre", "diff")
    assert diff["text"].rstrip("\n") == patch
    assert shown.texts_of("span", "added") == ["+return 2 * dy"]
    assert shown.texts_of("span", "removed") == ["-return dy"]
    assert "x0 = [1]" in shown.texts_of("pre")


HOSTILE = "</script><script>alert(1)</script>\"' onload='x' <img src=x> {{ 7 * 7 }} &amp; \udc80\x1b[31m"


def hostile(data, key=""):
    """Give findings with something hostile in every text that is free."""
    fixed = ("verdict", "excused", "kind", "answer")
    if isinstance(data, dict):
        return {name: hostile(value, name) for name, value in data.items()}
    if isinstance(data, list):
        return [hostile(value, key) for value in data]
    return HOSTILE if isinstance(data, str) and key not in fixed and data not in ("nan", "inf") else data


def test_text_of_a_user_is_text_wherever_it_stands(shown):
    full = replace(FAILURE, patch="+x", smallest="x", where="a\nb")
    report = replace(WRONG, findings=(full, *RIGHT.findings, *OPEN.findings), code="x", docstring="x")
    run = run_of(report)
    run.problems = ["x"]
    data = hostile(json.loads(report_json.dumps(run)))
    text, _ = page(data, [HOSTILE])
    text.encode()  # half a character is escaped
    found = Page(text)
    assert len(found.all("script")) == 1
    assert {e["tag"] for e in found.elements} <= {e["tag"] for e in shown.elements} | {"ul", "h4", "span"}
    assert not [e for e in found.elements if any(name.startswith("on") for name in e)]
    (name,) = {e["text"] for e in found.all("span", "name")}
    assert name.startswith("</script><script>alert(1)</script>\"' onload='x' <img src=x> {{ 7 * 7 }} &amp; ")
    assert "\x1b" not in text


def test_the_page_needs_no_network():
    text, _ = written(run_of(RIGHT, WRONG))
    found = Page(text)
    for name in ("src", "href", "action", "data"):
        links = [e[name] for e in found.elements if e.get(name)]
        assert all(link.startswith(("#", "data:,")) for link in links)
    assert "default-src 'none'" in text
    for word in ("http:", "https:", "url(", "@import"):
        assert word not in text


def test_a_run_without_a_rule_is_a_page_with_its_problem():
    text, _ = written(Run(7, ("gone.py",), [], ["gone.py does not exist"]))
    found = Page(text)
    assert found.texts_of("ul", "problems") == ["gone.py does not exist"]
    assert not found.all("table")


def test_a_report_shows_itself_with_the_same_words():
    shown = Page(WRONG._repr_html_())
    assert [e["tag"] for e in shown.elements][:2] == ["div", "style"]
    assert "the gradient of x is 2 times the derivative, everywhere" in shown.texts_of("h3")
    assert not shown.all("script")
    assert not [e for e in shown.elements if e.get("id")]  # a notebook may hold many


def test_without_jinja_a_report_is_text_and_the_page_is_a_sentence(monkeypatch, capsys, tmp_path):
    html.environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(html.NoTemplatesError, match=r"pip install 'pullback\[see\]'"):
        html.page(run_of(RIGHT))
    assert WRONG._repr_html_() is None
    (tmp_path / "train.py").write_text("open('run', 'w')")
    monkeypatch.chdir(tmp_path)
    assert cli.check_targets(("train.py",), Options(Settings()), html_file="report.html") == 2
    said = capsys.readouterr().err
    assert said == "pullback: the page needs Jinja2: pip install 'pullback[see]'\n"
    assert not (tmp_path / "run").exists()  # it is told before anything runs
