"""A rule that cannot be decorated is declared from outside: in Python, or by a comment at its definition."""

import functools
import gc
import importlib.util
import sys
import textwrap

import pytest
from rules import IDENTITIES, RULES

import pullback as pb
from pullback.declare import NOTHING, declared
from pullback.errors import ConfigurationError, DefinitionError
from pullback.record.listening import recording
from pullback.record.recorder import Recorder

QUICK = {"seed": 1, "own_points": False, "xla": False, "export": False}


def test_undeclared_it_is_wrong(framework):
    _, called, x = RULES[framework]()
    assert pb.check(called, x, **QUICK).verdict == "wrong"


def test_declared_it_is_as_declared_and_comes_back(framework):
    rule, called, x = RULES[framework]()
    assert pb.declare(rule, differs="straight-through") is rule
    report = pb.check(called, x, **QUICK)
    assert (report.verdict, report.intent) == ("right", "different on purpose: straight-through")
    assert pb.testing.assert_gradient(called, x, **QUICK).verdict == "right"


def test_like_is_compared_with_the_other_function(framework):
    rule, called, x = RULES[framework]()
    pb.declare(rule, like=IDENTITIES[framework])
    assert pb.check(called, x, **QUICK).verdict == "right"
    pb.declare(rule, like=lambda v: 2 * v)
    report = pb.check(called, x, **QUICK)
    assert (report.verdict, report.causes) == ("wrong", ["constant-factor"])


def test_a_function_that_uses_it_is_excused_too(framework):
    rule, called, x = RULES[framework]()
    pb.declare(rule, differs="straight-through")
    report = pb.check(lambda v: called(v) * 3, x, **QUICK)
    assert report.verdict == "right"
    assert "rounded" in report.intent.lower()


def test_one_rule_speaks_for_itself_alone(framework):
    rule, _, _ = RULES[framework]()
    _, other, x = RULES[framework]()
    pb.declare(rule, differs="straight-through")
    assert pb.check(other, x, **QUICK).verdict == "wrong"


def test_two_rules_of_one_function_are_two():
    import jax
    import jax.numpy as jnp

    def f(x):
        return jnp.round(x)

    first, second = jax.custom_vjp(f), jax.custom_vjp(f)
    for rule in (first, second):
        rule.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))
    pb.declare(first, differs="straight-through")
    assert declared(first) is not NOTHING
    assert declared(second) is NOTHING


def test_a_rule_of_ours_inside_another_function():
    import tensorflow as tf

    @pb.custom_gradient
    def rounded(x):
        return tf.round(x), lambda dy: dy

    pb.declare(rounded, differs="straight-through")
    x = tf.constant([0.3, 1.2])
    assert pb.check(rounded, x, **QUICK).verdict == "right"
    assert pb.check(lambda v: rounded(v) * 3, x, **QUICK).verdict == "right"


def test_it_is_a_decorator_and_what_is_said_later_counts_key_by_key():
    @pb.declare(order=1, differs="first")
    def f(x):
        return x

    assert pb.declare(differs="second")(f) is f
    said = declared(f)
    assert (said.order, said.intent.reason) == (1, "second")


def test_it_is_kept_weakly_and_beside():
    class Thing:
        __slots__ = ("__weakref__",)
        __hash__ = None

        def __call__(self, x):
            return x

    from pullback import declare as module

    store = module.__globals__["_said"]
    gc.collect()
    before = len(store)
    thing = pb.declare(Thing(), differs="a reason")
    assert declared(functools.partial(thing, 1)).intent.reason == "a reason"
    del thing
    gc.collect()
    assert len(store) == before


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "nothing is said"),
        ({"differs": " "}, "differs=' '"),
        ({"differs": 3}, "differs=3"),
        ({"like": 3}, "like=3"),
        ({"order": 3}, "order=3"),
        ({"order": True}, "order=True"),
        ({"domain": (1.0, 0.0)}, r"domain=\(1.0, 0.0\)"),
        ({"domain": {}}, "domain={}"),
        ({"domain": {"x": 3}}, r"domain\['x'\]=3"),
        ({"differs": "a", "like": abs}, "both like and differs"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, found):
    with pytest.raises(DefinitionError, match=found):
        pb.declare(abs, **given)


def test_what_is_no_rule_is_refused():
    with pytest.raises(DefinitionError, match="given a str"):
        pb.declare("package.Name", differs="a reason")


# ── comments ─────────────────────────────────────────────────────────────────────────────────────────────

HEADS = {
    "torch": """
        import torch
        {above}
        class Rounded(torch.autograd.Function):{beside}
            @staticmethod
            def forward(ctx, x): return torch.round(x)
            @staticmethod
            def backward(ctx, g): return g
        rule = Rounded.apply
        """,
    "jax": """
        import jax, jax.numpy as jnp
        {above}
        @jax.custom_vjp
        def rounded(x):{beside}
            return jnp.round(x)
        rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))
        rule = rounded
        """,
    "tensorflow": """
        import tensorflow as tf
        {above}
        @tf.custom_gradient
        def rounded(
            x,
        ):{beside}
            return tf.round(x), lambda g: g
        rule = rounded
        """,
}
COMMENT = '# pullback: differs="straight-through"'


def loaded(tmp_path, framework, **where):
    text = textwrap.dedent(HEADS[framework]).format(**{"above": "", "beside": "", **where})
    path = tmp_path / f"with_{framework}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.rule, RULES[framework]()[2]


@pytest.mark.parametrize("where", ["above", "beside"])
def test_a_comment_at_the_definition_declares(framework, tmp_path, where):
    rule, x = loaded(tmp_path, framework, **{where: "  " + COMMENT if where == "beside" else COMMENT})
    assert pb.check(rule, x, **QUICK).intent == "different on purpose: straight-through"


def test_a_comment_in_a_string_or_further_down_is_none(tmp_path):
    rule, x = loaded(tmp_path, "torch", above=f"text = '{COMMENT}'", beside=f"\n    {COMMENT}")
    assert pb.check(rule, x, **QUICK).verdict == "wrong"


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("# pullback: differs=straight-through", "differs=straight-through"),
        ("# pullback: straight-through", "straight-through"),
        ('# pullback: difers="a"', "difers='a'"),
        ('# pullback: like="nowhere_to_be_found.f"', "nowhere_to_be_found"),
    ],
)
def test_a_comment_that_cannot_be_read_is_an_error_with_its_line(tmp_path, comment, found):
    rule, x = loaded(tmp_path, "torch", beside=f"  {comment}")
    with pytest.raises(ConfigurationError, match=found) as caught:
        pb.check(rule, x, **QUICK)
    assert "with_torch.py:4" in str(caught.value)


def test_a_rule_of_equinox_can_be_declared():
    import equinox
    import jax.numpy as jnp

    @pb.declare(differs="straight-through")
    @equinox.filter_custom_vjp
    def backward(x):
        return jnp.round(x)

    backward.def_fwd(lambda perturbed, x: (jnp.round(x), None))
    backward.def_bwd(lambda residuals, g, perturbed, x: g)

    @pb.declare(differs="straight-through")
    @equinox.filter_custom_jvp
    def forward(x):
        return jnp.round(x)

    forward.def_jvp(lambda primals, tangents: (jnp.round(primals[0]), tangents[0]))
    recorder = Recorder()
    with recording(recorder):
        forward(backward(jnp.ones(2)))
    assert [rule.said().intent.reason for rule in recorder.rules.values()] == ["straight-through"] * 2
