"""Findings that are old, newer, cut off or damaged: one sentence each, and what can be shown is shown."""

import json

import pytest
from test_html import Page, run_of
from test_reports import DECLARED, OPEN, RIGHT, WRONG

from pullback import cli
from pullback.report import html
from pullback.report import json as report_json
from pullback.report.findings import FindingsError, load


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "findings.json"
    path.write_text(report_json.dumps(run_of(RIGHT, WRONG, OPEN, DECLARED)), encoding="utf-8")
    return path


def shown(capsys):
    """Run the command: its exit code, what it says, and the names of the rules on the page."""
    code = cli.shown("findings.json", "report.html")
    said = capsys.readouterr().err.splitlines()
    try:
        with open("report.html", encoding="utf-8") as page:
            return code, said, sorted(Page(page.read()).texts_of("span", "name"))
    except FileNotFoundError:
        return code, said, []


EVERY = ["cube", "noisy", "quantise", "softplus"]


def changed(file, change):
    data = json.loads(file.read_text(encoding="utf-8"))
    change(data)
    file.write_text(json.dumps(data), encoding="utf-8")


def test_findings_make_a_page_later_and_elsewhere(file, capsys):
    assert shown(capsys) == (0, [], EVERY)


@pytest.mark.parametrize("schema", [2, "next", None])
def test_findings_of_another_version_are_shown_as_far_as_they_are_known(file, capsys, schema):
    def newer(data):
        data.update(schema=schema, surprise={"a": 1})
        data["rules"][0]["surprise"] = [1, 2]

    changed(file, newer)
    code, said, names = shown(capsys)
    assert (code, names) == (2, EVERY)
    assert len(said) == 1
    assert "and this pullback reads 1: what it knows of is shown" in said[0]


def test_a_file_that_is_cut_off_shows_the_rules_before_that_place(file, capsys):
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index('"noisy"')], encoding="utf-8")
    code, said, names = shown(capsys)
    assert (code, names) == (2, ["cube", "softplus"])
    assert said == [
        "pullback: findings.json is cut off or damaged: the 2 rule(s) before that place are shown"
    ]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.97])
def test_wherever_a_file_is_cut_off_there_is_one_sentence(file, capsys, share):
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: int(len(text) * share)], encoding="utf-8")
    code, said, _ = shown(capsys)
    assert code == 2
    assert len(said) == 1


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[1, 2]", '{"a": 1}', "\x00\x01", "[" * 100_000, '{"rules": 3}']
)
def test_what_holds_no_findings_is_refused_in_a_sentence(file, capsys, text):
    file.write_text(text, encoding="utf-8")
    code, said, names = shown(capsys)
    assert (code, names) == (2, [])
    assert len(said) == 1
    assert said[0].startswith("pullback: findings.json ")


def test_a_file_that_is_not_there_is_a_sentence(file):
    with pytest.raises(FindingsError, match=r"gone\.json cannot be read: No such file"):
        load("gone.json")


def test_missing_and_damaged_fields_cost_themselves_only(file, capsys):
    def damaged(data):
        del data["rules"][0]["verdict"], data["rules"][0]["findings"][0]["sentence"], data["seed"]
        data["rules"][1].update(capabilities=3, pictures="x", resolution="soon", excused="maybe")
        data["rules"][2] = "gone"

    changed(file, damaged)
    code, said, names = shown(capsys)
    assert (code, names) == (2, ["cube", "quantise", "softplus"])
    assert said == [
        "pullback: 1 of 4 rules lack capabilities, excused, pictures, resolution, sentence, verdict: "
        "the rest of them is shown",
        "pullback: 1 of 4 rules are no findings, and are left out",
    ]
    with open("report.html", encoding="utf-8") as page:
        words = [row["data-word"] for row in Page(page.read()).all("tr") if "data-word" in row]
    assert sorted(words) == ["as declared", "undecided", "wrong"]  # no verdict is no pass


def test_what_an_earlier_pullback_did_not_write_is_not_missed(file, capsys):
    def earlier(data):
        for rule in data["rules"]:
            for name in ("code", "docstring", "pictures"):
                del rule[name]
            for finding in rule["findings"]:
                del finding["smallest"], finding["patch"]

    changed(file, earlier)
    assert shown(capsys) == (0, [], EVERY)


def test_very_many_rules_are_folded_and_the_worst_are_shown(file, capsys, monkeypatch):
    monkeypatch.setattr(html, "RULES", 3)

    def many(data):
        data["rules"] = [dict(data["rules"][0], line=i) for i in range(50)] + data["rules"][1:3]

    changed(file, many)
    assert shown(capsys) == (0, [], ["cube", "noisy", "softplus"])
    with open("report.html", encoding="utf-8") as page:
        found = Page(page.read())
    assert found.texts_of("button", "tally") == ["1 wrong", "1 undecided", "50 right"]
    (folded,) = found.texts_of("p", "folded")
    assert folded.startswith("49 more rules are counted above and not shown: the 3 worst are.")


def test_very_many_findings_of_a_rule_are_folded(file, capsys):
    def many(data):
        wrong, right = data["rules"][1]["findings"][0], data["rules"][0]["findings"][0]
        sentences = [dict(wrong, sentence=f"{i}") for i in range(300)]
        data["rules"] = [dict(data["rules"][1], findings=sentences + [right] * 500)]

    changed(file, many)
    assert shown(capsys)[0] == 0
    with open("report.html", encoding="utf-8") as page:
        found = Page(page.read())
    assert len(found.all("article", "failure")) == 12
    assert [text.split()[0] for text in found.texts_of("p", "folded")] == ["288", "460"]


def test_a_page_that_cannot_be_written_is_a_sentence(file, capsys):
    assert cli.shown("findings.json", "gone/report.html") == 2
    assert (
        capsys.readouterr().err == "pullback: gone/report.html cannot be written: No such file or directory\n"
    )
