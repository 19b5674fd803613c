"""`pullback check --mend --write`: what is wrong is mended in the file, and proven there by a new process."""

import json
import subprocess

import pytest

RULES = """
    import jax
    import jax.numpy as jnp


    @jax.custom_vjp
    def square(x):
        return x * x


    def forward(x):
        return x * x, x


    def backward(x, dy):
        return (dy * x,)  # größe


    square.defvjp(forward, backward)


    @jax.custom_gradient
    def loud(x):
        def grad(dy):
            print("loud")
            return dy * x

        return x * x, grad


    print("training")
    jax.grad(lambda x: (square(x) + loud(x)).sum())(jnp.array([0.5, -1.2, 0.9]))
"""


@pytest.fixture(scope="module")
def done(project):
    project.write("rules.py", RULES)
    path = project.folder / "rules.py"
    before = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(before)
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *arguments], cwd=project.folder, check=True)
    code, out, said = project.check("rules.py", "--mend", "--write", "--json", "found.json", "--github")
    found = json.loads((project.folder / "found.json").read_text(encoding="utf-8"))
    return before, path.read_bytes(), code, out, said, found


def test_the_file_is_mended_and_nothing_else_of_it_is_touched(done):
    before, after, *_ = done
    assert after != before
    lines = [(b, a) for b, a in zip(before.split(b"\r\n"), after.split(b"\r\n")) if a != b]
    ((old, new),) = lines
    assert old.endswith("  # größe".encode())
    assert new.endswith("  # größe".encode())
    assert after.count(b"\n") == before.count(b"\n") == after.count(b"\r\n")


def test_the_diff_is_shown_before_and_the_table_afterwards(done):
    out = done[3]
    assert out.index("\n--- a/rules.py\n+++ b/rules.py\n") < out.index("wrong: constant-factor")
    assert "this edit makes it right at all " in out
    assert "mend: no edit: its gradient does not look pure: it calls `print`" in out
    assert "right, mended" in out.split("2 rules: 2 wrong")[1]


def test_it_is_said_what_was_written(done):
    code, _, said = done[2:5]
    assert code == 1, "one rule is still wrong"
    (line,) = said
    assert line.startswith("pullback: rules.py is written (square: ")
    assert line.endswith("; checked again: right")


def test_the_target_prints_once(done):
    assert done[3].count("training") == 1


def test_the_findings_are_those_of_the_mended_file(done):
    square, loud = done[5]["rules"]
    assert (square["verdict"], loud["verdict"]) == ("right", "wrong")
    (note, *_) = [f for f in square["findings"] if f["probe"] == "mend"]
    assert note["patch"].startswith("--- a/rules.py\n+++ b/rules.py\n@@ ")
    assert "  # größe\r\n" in note["patch"]
    assert done[5]["exit_code"] == 1
