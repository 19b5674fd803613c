"""Sources that are hard to edit: each gets an edit that applies, or one sentence; the verdict stands."""

import importlib.util
import subprocess

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


def test_an_edit_applies_with_git_and_mends_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module, path = loaded(tmp_path, ALL)
    report = checked(module.square)
    assert report.verdict == "wrong"
    assert report.patch, said(report)
    subprocess.run(["git", "apply", "-"], input=report.patch.encode(), cwd=tmp_path, check=True)
    again = path.read_bytes()
    assert again.count(b"\r\n") == ALL.count("\r\n")
    assert checked(loaded(tmp_path, again.decode())[0].square).verdict == "right"


def test_what_cannot_be_edited_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module, path = loaded(tmp_path, RULE)
    path.unlink()
    report = checked(module.square)
    sentence, resort = said(report)
    assert report.verdict == "wrong"
    assert report.patch == ""
    assert sentence == "no edit: its source is not in a file, so there is no text to edit"
    assert resort.startswith("the last resort: delete the rule")
