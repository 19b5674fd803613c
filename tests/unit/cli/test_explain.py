"""`pullback explain`: each cause and each error has its page in the terminal; a misspelt one is guessed."""

import inspect
import io
import re

import pytest

from pullback import errors
from pullback.checker.cause import causes
from pullback.explain import explain, names, sections

CLASSES = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.PullbackError)]


def said(name, stream=None):
    stream = stream or io.StringIO()
    assert explain(name, stream) == 0
    return stream.getvalue()


def test_all_there_is_can_be_explained():
    assert set(names()["causes"].values()) == {cause.SLUG for cause in causes()}
    assert set(names()["errors"].values()) == {kind.__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_found_by_its_class_and_by_its_anchor(kind):
    (found,) = sections(kind.__name__)
    assert f"`{kind.__name__}`" in found
    assert found in sections(kind.anchor())
    assert "{#" not in found


@pytest.mark.parametrize("cause", sorted({cause.SLUG for cause in causes()}))
def test_a_cause_shows_the_wrong_code_and_the_right_one(cause):
    assert f"## {cause}\n" in said(cause)
    assert f"\n{cause}: " in said(cause)
    assert "\nright\n" in said(cause)


def test_capitals_do_not_matter():
    assert said("cotangentshapeerror") == said("CotangentShapeError")
    assert said("Upstream-Ignored") == said("upstream-ignored")


def test_a_word_of_both_pages_shows_both():
    cause, error = sections("surrogate")
    assert cause.startswith("## surrogate\n")
    assert "`SurrogateError`" in error


def test_links_that_only_a_browser_follows_are_words():
    text = "\n".join(text for found in names().values() for name in found for text in sections(name))
    assert "the contract" in text
    assert not re.search(r"\]\([\w/]+\.md", text)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("upstream-ignore", "upstream-ignored"),
        ("CotangentShape", "CotangentShapeError"),
        ("captured-tenso", "CapturedTensorError"),
    ],
)
def test_a_misspelt_name_is_guessed(name, meant, capsys):
    assert explain(name) == 2
    out, problem = capsys.readouterr()
    assert out == ""
    assert problem.startswith(f"pullback: nothing is called '{name}': is it ")
    assert meant in problem


def test_a_name_like_no_other_is_sent_to_the_list(capsys):
    assert explain("\x1b[31mqqqq") == 2
    assert capsys.readouterr().err == (
        "pullback: nothing is called '\\x1b[31mqqqq': pullback explain lists all\n"
    )


def test_colours_are_for_a_terminal_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert "\x1b" not in said("sign")
    shown = said("sign", Terminal())
    assert "sign" in shown
    assert "```" not in shown


def test_no_name_lists_all():
    text = said(None)
    assert text.splitlines()[0] == "causes:"
    for found in names().values():
        for name in found.values():
            assert f"  {name}\n" in text
