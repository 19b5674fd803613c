"""Declared from outside: the configuration and the baseline, on the command line as in CI."""

import json

import pytest

# JAX starts in a fraction of the time of the others.
SCRIPT = """
    import jax, jax.numpy as jnp

    @jax.custom_vjp
    def rounded(x):
        return jnp.round(x)

    rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))

    @jax.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3 * x,))

    jax.grad(lambda x: (rounded(x) + cube(x)).sum())(jnp.array([0.3, 1.2, -0.7, 2.6]))
"""
BOTH = """
    [tool.pullback]
    seed = 7
    order = 1

    [tool.pullback.rules."train.rounded"]
    differs = "straight-through"
"""


@pytest.fixture
def folder(project, tmp_path):
    made = type(project)(tmp_path)
    made.write("train.py", SCRIPT)
    return made


def run(folder, *arguments):
    return tuple(folder.run("check", *arguments))


def test_a_surrogate_counts_apart_and_fails(folder):
    code, out, _ = run(folder, "train.py", "--order", "1", "--seed", "1", "--json", "report.json")
    assert code == 1
    assert "2 rules: 1 wrong, 1 looks like a surrogate: declare it; seed 1" in out
    assert '[tool.pullback.rules."train.rounded"]' in out
    rules = json.loads((folder.folder / "report.json").read_text(encoding="utf-8"))["rules"]
    assert {r["qualified"] for r in rules} == {"train.rounded", "train.cube"}


def test_the_configuration_declares_fixes_the_seed_and_says_what_fits_nothing(folder):
    gone = '\n    [tool.pullback.rules."train.Gone"]\n    differs = "it was one"\n'
    elsewhere = '\n    [tool.pullback.rules."othermodule.Gone"]\n    differs = "it is not run"\n'
    skipped = '\n    [tool.pullback.rules."*.cube"]\n    skip = "known to be wrong"\n'
    folder.write("pyproject.toml", BOTH + gone + elsewhere + skipped)
    code, out, said = run(folder, "train.py", "--strict")
    assert code == 0, said
    assert "2 rules: 1 as declared, 1 skipped; seed 7" in out
    assert "skipped: known to be wrong" in out
    assert 'pullback: the configuration speaks of "train.Gone", and no rule of this run has that name' in said
    assert "othermodule" not in said
    assert "seed 3" in run(folder, "train.py", "--seed", "3")[1]  # the command line wins


def test_a_declaration_that_excuses_nothing_is_said(folder):
    folder.write(
        "fine.py",
        """
        import jax, jax.numpy as jnp

        @jax.custom_vjp  # pullback: differs="it once was"
        def sine(x):
            return jnp.sin(x)

        sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
        jax.grad(lambda x: sine(x).sum())(jnp.array([0.3, 1.2]))
        """,
    )
    code, out, said = run(folder, "fine.py", "--order", "1", "--seed", "1")
    assert (code, "1 as declared" in out) == (0, True)
    assert "fine.sine: the comment in fine.py:4 says that its gradient is different on purpose" in said


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[tool.pullback]\nseeds = 1", ["pyproject.toml [tool.pullback]", "seeds = 1", "seed"]),
        ("[tool.pullback]\nseed = -1", ["seed = -1", "a whole number from 0"]),
        (
            '[tool.pullback.rules."a.B"]\ndiffers = ""',
            ['rules."a.B"]', "the reason, in words"],
        ),
        ('[tool.pullback.rules."a.B"]\ndifers = "x"', ["difers='x'", 'fix: differs="straight-through"']),
        ('[tool.pullback.rules.a.B]\ndiffers = "x"', ["its name in quotes"]),
        ('[tool.pullback.rules."a.B"]\ndomain = [1, 0]', ["domain=[1, 0]"]),
        ("[tool.pullback\n", ["no TOML"]),
    ],
)
def test_a_mistake_in_the_configuration_names_file_table_and_key(folder, text, parts):
    (folder.folder / "pyproject.toml").write_text(text, encoding="utf-8")
    code, out, said = run(folder, "train.py")
    assert (code, out) == (2, "")
    assert "Traceback" not in said
    assert all(part in said for part in parts), said


def test_a_function_that_cannot_be_imported_is_an_error_of_its_table(folder):
    folder.write("pullback.toml", '[rules."train.rounded"]\nlike = "nowhere_to_be_found.f"\n')
    code, out, said = run(folder, "train.py", "--order", "1", "--seed", "1")
    assert code == 2
    assert "wrong: " in out  # the other rule is checked all the same
    assert "pullback.toml [rules.\"train.rounded\"]: like='nowhere_to_be_found.f'" in said


def test_the_configuration_is_found_upward_or_given(folder):
    folder.write("pullback.toml", "seed = 5\n")
    folder.write("other/settings.toml", "seed = 6\n")
    folder.write("inner/easy.py", "print('nothing')")
    assert run(folder, "--help")[0] == 0
    assert "seed 5" in run(folder, "train.py", "--order", "1")[1]
    assert "seed 6" in run(folder, "train.py", "--order", "1", "--config", "other/settings.toml")[1]
    code, _, said = run(folder, "train.py", "--config", "missing.toml")
    assert code == 2
    assert "missing.toml: it cannot be read" in said


def test_a_baseline_lets_only_what_is_new_fail(folder):
    quick = ("--order", "1", "--baseline", "known.json")
    assert run(folder, "train.py", *quick)[0] == 2
    code, out, said = run(folder, "train.py", *quick, "--write-baseline")
    assert (code, "2 known finding(s) written to known.json" in said) == (0, True)
    written = json.loads((folder.folder / "known.json").read_text(encoding="utf-8"))
    assert {k["rule"] for k in written["known"]} == {"train.rounded", "train.cube"}
    assert set(written["known"][0]) == {"rule", "probe", "cause"}
    assert [p.name for p in folder.folder.glob("tmp*")] == []

    folder.write("train.py", "\n# a line above\n" + SCRIPT.replace("\n    ", "\n"))
    code, out, said = run(folder, "train.py", *quick)
    assert (code, "2 known" in out) == (0, True)
    assert "to see it" not in out

    folder.write("train.py", SCRIPT.replace("(g * 3 * x,)", "(-g,)"))
    code, out, said = run(folder, "train.py", *quick)
    assert code == 1
    assert "1 wrong, 1 known" in out
    assert "in the baseline, but not in this run: train.cube (" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist"),
        ('{"baseline": 1, "kno', "not whole JSON"),
        ("[]", "no baseline of pullback"),
        ('{"schema": 1}', "no baseline of pullback"),
        ('{"baseline": 99, "known": []}', "version 99"),
        ('{"baseline": 1, "known": [{"rule": "a"}]}', "damaged"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_one_sentence(folder, text, said):
    if text is not None:
        (folder.folder / "known.json").write_text(text, encoding="utf-8")
    code, out, error = run(folder, "train.py", "--baseline", "known.json")
    assert (code, out) == (2, "")
    lines = [line for line in error.splitlines() if line.startswith("pullback: ")]
    assert len(lines) == 1
    assert said in lines[0]


def test_to_write_a_baseline_needs_a_file(folder):
    code, _, said = run(folder, "train.py", "--write-baseline")
    assert (code, "needs a file" in said) == (2, True)


OTHERS = {
    "torch": """
        import torch

        class rounded(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return torch.round(x)

            @staticmethod
            def backward(ctx, g):
                return g

        rounded.apply(torch.tensor([0.3, 1.2], requires_grad=True)).sum().backward()
        """,
    "tensorflow": """
        import tensorflow as tf

        @tf.custom_gradient
        def rounded(x):
            return tf.round(x), lambda g: g

        rounded(tf.constant([0.3, 1.2]))
        """,
}


@pytest.mark.parametrize("name", OTHERS)
def test_rules_of_the_other_frameworks_have_names_too(folder, name):
    folder.write("program.py", OTHERS[name])
    folder.write("pullback.toml", 'order = 1\nseed = 1\n[rules."program.rounded"]\ndiffers = "steps"\n')
    code, out, said = run(folder, "program.py")
    assert code == 0, said
    assert "1 rule: 1 as declared; seed 1" in out
    assert "different on purpose: steps" in out
