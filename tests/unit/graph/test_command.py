"""`pullback graph`: the command as a user runs it, and each of its sentences."""

import sys

import pytest

from pullback.cli import main

MODULE = """
import numpy as np
import torch
import pullback as pb

@pb.example(torch.tensor([1.0, 0.0]))
def loss(x):
    return torch.sqrt(x).sum()

@pb.example(torch.tensor([1.0, 0.0]))
def broken(x):
    return (x * 2).sum() + undefined

def bare(x):
    return x

number = 3
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Give what runs the command in a folder with one module: exit code, what it printed, what it said."""
    (tmp_path / "drawn_losses.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "drawn_losses", raising=False)

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["graph", *arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return command


def test_a_function_is_printed(run):
    code, out, err = run("drawn_losses:loss")
    assert (code, err) == (0, "")
    assert out.startswith("loss on torch: 2 operations\n")
    assert "first culprit: sqrt (drawn_losses.py:8): what comes to it is finite" in out


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.svg", b"<svg "), ("a.png", b"\x89PNG"), ("a.dot", b"digraph {"), ("a.mmd", b"flowchart TD")],
)
def test_a_file_is_written_in_the_form_of_its_suffix(run, tmp_path, name, beginning):
    code, out, err = run("drawn_losses.py:loss", "-o", name)
    assert (code, out) == (0, "")
    assert err.startswith("pullback: first culprit: sqrt")
    assert (tmp_path / name).read_bytes().startswith(beginning)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("drawn_losses:nothing", "drawn_losses has no nothing"),
        ("drawn_losses:number", "drawn_losses:number is no function but a int"),
        ("drawn_losses:bare", "drawn_losses:bare has no example arguments: mark it with @pb.example(...)"),
        ("drawn_losses.py", "drawn_losses.py is a script: name a function of it, as in drawn_losses.py:loss"),
        ("nowhere.py:f", "nowhere.py does not exist"),
    ],
)
def test_a_target_that_cannot_be_drawn_is_one_sentence(run, target, said):
    assert run(target) == (2, "", f"pullback: {said}\n")


def test_what_could_be_drawn_is_drawn(run):
    code, out, _ = run("drawn_losses:broken")
    assert code == 2
    assert "broken cannot be run: NameError: name 'undefined' is not defined" in out
    assert "mul" in out


def test_a_file_that_cannot_be_written_and_a_form_that_is_not_known(run):
    assert run("drawn_losses:loss", "-o", "nowhere/a.svg")[2].endswith("No such file or directory\n")
    code, _, err = run("drawn_losses:loss", "-o", "a.pdf")
    assert code == 2
    assert "a file that ends in .pdf" in err
