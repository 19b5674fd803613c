"""Targets: read without running them, and refused in one sentence."""

import pytest

from pullback.record.target import TargetError, parse


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_kind_is_told_from_its_spelling(here):
    (here / "train.py").write_text("x = 1")
    (here / "folder").mkdir()
    assert parse("train.py").kind == "script"
    assert parse("folder").kind == "folder"
    assert parse("mylib").kind == parse("mylib.losses").kind == "module"
    named = parse("mylib.losses:Focal.call")
    assert (named.kind, named.module, named.function) == ("function", "mylib.losses", "Focal.call")
    in_file = parse("train.py:f")
    assert (in_file.kind, in_file.module) == ("function", str(here / "train.py"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.py", None, "does not exist"),
        ("gone/folder/", None, "does not exist"),
        ("gone.py:f", None, "does not exist"),
        ("broken.py", b"def f(:\n", "has a syntax error (broken.py:1"),
        ("notes.txt", b"hello", "is not a Python file"),
        ("image.py", b"\x89PNG\0\xff", "is not Python"),
        ("latin.py", b"# \xe9\xe8", "is not Python"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(here, name, content, said):
    if content is not None:
        (here / name).write_bytes(content)
    with pytest.raises(TargetError) as error:
        parse(name)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
