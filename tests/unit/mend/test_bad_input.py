"""Sources that are hard to edit: each gets an edit that applies, or one sentence; the verdict stands."""

import importlib.util
import subprocess

import pytest

import pullback as pb

RULE = """
import tensorflow as tf


@tf.custom_gradient
def square(x):
    # the square
    def grad(dy):
        return dy * x

    return x * x, grad
"""
LAMBDAS = """
import tensorflow as tf

square, cube = tf.custom_gradient(lambda x: (x * x, lambda dy: dy * x)), lambda x: (x**3, lambda dy: dy * x)
"""
NAMES = RULE.replace("square(x)", "größe(ж)").replace("dy * x", "δ * ж").replace("(dy)", "(δ)")
NAMES = NAMES.replace("x * x", "ж * ж") + "\n\nsquare = größe\n"


def loaded(folder, text):
    path = folder / "rules.py"
    path.write_bytes(text.encode())
    spec = importlib.util.spec_from_file_location("rules", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path


def checked(function):
    import tensorflow as tf

    x = tf.constant([0.5, -1.2, 0.9])
    return pb.check(function, x, seed=1, mend=True, probes=("derivative",), own_points=False)


def said(report):
    return [f.sentence for f in report.findings if f.probe == "mend"]


# No newline at the end either.
ALL = NAMES.replace("    ", "\t").rstrip("\n").replace("\n", "\r\n")


@pytest.mark.parametrize("text", [ALL, LAMBDAS], ids=["CRLF, tabs and other letters", "lambdas"])
def test_an_edit_applies_with_git_and_mends_the_file(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    module, path = loaded(tmp_path, text)
    report = checked(module.square)
    assert report.verdict == "wrong"
    assert report.patch, said(report)
    subprocess.run(["git", "apply", "-"], input=report.patch.encode(), cwd=tmp_path, check=True)
    again = path.read_bytes()
    assert again.count(b"\r\n") == text.count("\r\n")
    assert checked(loaded(tmp_path, again.decode())[0].square).verdict == "right"


def generated(tmp_path):
    space = {}
    exec(compile(RULE, "<generated>", "exec"), space)
    return space["square"]


def changed(tmp_path):
    module, path = loaded(tmp_path, RULE)
    path.write_text(f"# a new line\n{RULE}")
    return module.square


def removed(tmp_path):
    module, path = loaded(tmp_path, RULE)
    path.unlink()
    return module.square


def loud(tmp_path):
    text = RULE.replace("return dy * x", "print('loud'); return dy * x")
    return loaded(tmp_path, text)[0].square


def counting(tmp_path):
    text = RULE.replace("        return dy * x", "        calls.append(dy)\n        return dy * x")
    return loaded(tmp_path, f"calls = []\n{text}")[0].square


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (generated, "its source is not in a file"),
        (changed, "rules.py is not what was imported"),
        (removed, "its source is not in a file"),
        (loud, "does not look pure"),
        (counting, "does not look pure"),
    ],
)
def test_what_cannot_be_edited_says_why(tmp_path, monkeypatch, made, words):
    monkeypatch.chdir(tmp_path)
    report = checked(made(tmp_path))
    sentence, *rest = said(report)
    assert all(other.startswith("the last resort: delete the rule") for other in rest)
    assert report.verdict == "wrong"
    assert report.patch == ""
    assert sentence.startswith("no edit: ")
    assert words in sentence
