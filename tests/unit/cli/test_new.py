"""`pullback new`: what it writes is right as it is, hides nothing and overwrites nothing."""

import sys

import pytest

import pullback.new
from pullback.hosts import SUPPORTED
from pullback.new import new
from pullback.testing import assert_gradient


@pytest.mark.parametrize("framework", SUPPORTED)
def test_the_written_test_passes(framework, tmp_path, monkeypatch, capsys):
    name = f"rule_for_{framework}"
    assert new(name, framework, tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"wrote {name}.py and test_{name}.py",
        f"next: pullback check {name}.py:{name}",
        f"      pytest test_{name}.py",
    ]
    monkeypatch.syspath_prepend(tmp_path)
    space = {}
    exec(compile((tmp_path / f"test_{name}.py").read_text("utf-8"), "test.py", "exec"), space)
    space[f"test_the_gradient_of_{name}"](assert_gradient)
    # … and would fail for a wrong rule
    code = (tmp_path / f"{name}.py").read_text("utf-8").replace("2 * x * dy", "3 * x * dy")
    (tmp_path / f"{name}_wrong.py").write_text(code, "utf-8")
    space[name] = getattr(__import__(f"{name}_wrong"), name)
    with pytest.raises(AssertionError, match="wrong"):
        space[f"test_the_gradient_of_{name}"](assert_gradient)
    for module in (name, f"{name}_wrong"):
        del sys.modules[module]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("my-rule.py", "is no name of a function: write my_rule"),
        ("class", "is no name of a function"),
        ("3d", "is no name of a function"),
        ("../rule", "is no name of a function: write rule"),
        ("test_rule", "pytest would take the rule for a test"),
        ("pb", "the rule uses this name"),
        ("dy", "the rule uses this name"),
        ("tf", "the rule uses this name"),
        ("json", "a module of this name is installed"),
        ("numpy", "a module of this name is installed"),
    ],
)
def test_a_name_that_does_not_do_is_refused(name, problem, tmp_path, capsys):
    assert new(name, "tensorflow", tmp_path) == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["rule.py", "test_rule.py"])
def test_nothing_is_overwritten_and_nothing_is_half_written(file, tmp_path, capsys):
    (tmp_path / file).write_text("mine")
    assert new("rule", "torch", tmp_path) == 2
    assert capsys.readouterr().err == f"pullback: {file} exists: it is not overwritten\n"
    assert [path.name for path in tmp_path.iterdir()] == [file]
    assert (tmp_path / file).read_text() == "mine"


def test_a_folder_that_is_not_there_is_told(tmp_path, capsys):
    assert new("rule", "torch", tmp_path / "none") == 2
    assert "No such file" in capsys.readouterr().err


def test_it_writes_for_what_is_installed(monkeypatch):
    monkeypatch.setattr(pullback.new.importlib.util, "find_spec", lambda name: name == "torch" or None)
    assert pullback.new.installed() == "torch"
    monkeypatch.setattr(pullback.new.importlib.util, "find_spec", lambda name: None)
    assert pullback.new.installed() == "tensorflow"
