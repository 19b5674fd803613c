"""From a wrong rule to an edit that is proven: found, named, as small as the bug, and safe to search."""

import ast
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from mending import WRONG, loaded

import pullback as pb
from pullback.checker import check
from pullback.checker.budget import Budget
from pullback.mend.diff import edited
from pullback.mend.prove import Remade
from pullback.mend.search import Search, mend

QUICK = {"xla": False, "export": False}


RULES = loaded(Path(__file__).with_name("rules.py")).RULES


def mended(function, at, budget=10.0):
    return mend(function, tuple(at), {}, WRONG, budget=budget)


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_rule_is_mended_and_named_by_the_edit(name):
    function, at, words = RULES[name]
    report = check(function, *at, seed=1, **QUICK) if name == "maximum" else WRONG  # wrong at ties alone
    found = mend(function, at, {}, report, budget=10.0)
    assert found.patches, (found.refused, found.tried)
    first = found.patches[0]
    assert words in first.words
    assert first.order == (1 if name == "maximum" else 2)  # a tie has no second derivative
    assert first.points
    # What is shown is what was verified: it parses, and changes nothing but the spans.
    text = edited(first.text, first.spans)
    ast.parse(text)
    assert len(text.splitlines()) == len(first.text.splitlines())
    with open(first.file, newline="") as stream:
        assert stream.read() == first.text


def written(tmp_path, text):
    path = tmp_path / "written.py"
    path.write_text(text)
    return loaded(path)


SQUARE = """import tensorflow as tf

@tf.custom_gradient
def square(x):
    return x * x, lambda d: d * x
"""
X = tf.constant([0.3, -1.2, 2.0])


def test_two_lambdas_on_one_line_are_told_apart(tmp_path):
    text = """import tensorflow as tf
def body(x):
    plain = lambda d: 2 * d * x; wrong = lambda d: d * x
    return x * x, wrong
square = tf.custom_gradient(body)
"""
    (patch, *_) = mended(written(tmp_path, text).square, (X,)).patches
    assert "plain = lambda d: 2 * d * x; wrong = lambda d: d * 2 * x" in edited(patch.text, patch.spans)


def refusal(function, at=(X,)):
    found = mended(function, at)
    assert not found.patches
    assert found.refused is not None
    assert "\n" not in found.refused
    return found.refused


def test_what_was_typed_in_is_refused_in_one_sentence():
    space = {"tf": tf}
    exec("@tf.custom_gradient\ndef f(x):\n    return x * x, lambda d: d * x", space)
    assert "not in a file" in refusal(space["f"])


def test_a_file_that_has_changed_since_is_refused(tmp_path):
    module = written(tmp_path, SQUARE)
    path = tmp_path / "written.py"
    path.write_text(SQUARE.replace("d * x", "d * 7 * x"))
    assert "not what was imported" in refusal(module.square)


IMPURE = {
    "print(d)": "calls `print`",
    "seen.append(1)": "seen.append",
    "os.getcwd()": "not known to compute only",
    "told(d)": "`told`, which it calls",
    "state['d'] = 1": "changes",
}


@pytest.mark.parametrize("line", IMPURE)
def test_what_does_not_look_pure_is_never_run_with_edits(tmp_path, line):
    text = f"""import os
import tensorflow as tf
seen, state = [], {{}}
def told(d):
    global seen
    seen = [d]
@tf.custom_gradient
def square(x):
    def grad(d):
        {line}
        return d * x
    return x * x, grad
"""
    module = written(tmp_path, text)
    assert IMPURE[line] in refusal(module.square)


def test_a_declared_rule_is_never_mended():
    @pb.custom_gradient(differs="straight-through")
    def rounded(x):
        return tf.round(x), lambda d: d

    assert "declared" in refusal(rounded)


def test_the_budget_is_kept_and_what_was_tried_is_said(tmp_path):
    text = """import tensorflow as tf
@tf.custom_gradient
def odd(x):
    return tf.math.lgamma(tf.cosh(x)), lambda d: d * tf.round(x)
"""
    found = mended(written(tmp_path, text).odd, (X,), budget=0.5)
    assert not found.patches
    assert found.refused is None
    assert found.seconds < 3
    assert found.edits


def test_a_number_among_the_arguments_is_not_written_into_the_rule(tmp_path):
    text = """import tensorflow as tf
def scaled(x, k):
    return tf.custom_gradient(lambda x: (k * x, lambda d: d))(x)
import pullback as pb
@pb.custom_gradient
def times(x, k):
    return k * x, lambda d: (d, None)
"""
    (patch, *_) = mended(written(tmp_path, text).times, (X, 3.0)).patches
    assert "k" in patch.spans[0].new
    assert "3" not in patch.spans[0].new


def test_the_users_objects_stay_as_they_are():
    function, at, _ = RULES["product"]
    body = function._tf_decorator.decorated_target
    code, space = body.__code__, dict(body.__globals__)
    kept = [np.array(x) for x in at]
    mended(function, at)
    assert body.__code__ is code
    assert body.__globals__ == space
    assert all((np.array(x) == k).all() for x, k in zip(at, kept))


def test_functions_of_the_file_call_each_other_as_edited(tmp_path):
    text = """import tensorflow as tf
def pull(x, d):
    return d * x
@tf.custom_gradient
def square(x):
    return x * x, lambda d: pull(x, d)
"""
    module = written(tmp_path, text)
    search = Search(module.square, (X,), {}, WRONG, Budget(5))
    remade = Remade(search.prover.region, text.replace("return d * x", "return 2 * d * x"))
    body = module.square._tf_decorator.decorated_target
    assert np.allclose(remade[body](X)[1](tf.ones(3)), 2 * X)
    assert np.allclose(body(X)[1](tf.ones(3)), X)
