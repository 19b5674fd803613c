"""A target that cannot be run: one clear sentence, exit code 2, and every finding already made."""

import subprocess
import sys

import pytest

LOST = "before its rules could be checked"
# In JAX, whose import takes a fraction of the time: how a program ends is no affair of a framework.
SQUARE = """
import os, signal, sys, time
import jax, jax.numpy as jnp

@jax.custom_gradient
def square(x):
    return FACTOR * x * x, lambda dy: -2 * FACTOR * x * dy

FACTOR = 1.0
X = jnp.array([1.0, 2.0])
"""


@pytest.mark.parametrize(
    ("program", "end", "arguments", "code", "sentence"),
    [
        (
            SQUARE,
            "square(X)\nraise ValueError('half way')",
            [],
            2,
            "bad.py raised ValueError: half way (bad.py:13)",
        ),
        (SQUARE, "square(X)\nsys.exit(3)", [], 2, "bad.py ended with exit status 3"),
        (SQUARE, "square(X)\nsys.exit('no data')", [], 2, "bad.py ended with: no data"),
        (
            SQUARE,
            "if __name__ == '__main__':\n    square(X)\n    os.kill(os.getpid(), signal.SIGSEGV)",
            [],
            2,
            f"bad.py crashed (SIGSEGV) {LOST}: 1 call(s) were recorded",
        ),
        (
            SQUARE,
            "square(X)\nos._exit(0)",
            [],
            2,
            f"bad.py ended at once with exit status 0 {LOST}: 1 call(s) were recorded",
        ),
        (
            SQUARE,
            "while True:\n    try:\n        square(X)\n    except BaseException:\n        pass\n    y = 1",
            ["--calls", "5"],
            1,
            "bad.py was stopped after 5 calls; what it had used by then is checked",
        ),
        (
            SQUARE,
            "square(X), time.sleep(1e6)",  # one line: nothing of Python runs before it sleeps
            ["--calls", "1"],
            1,
            "bad.py was stopped after 1 calls; what it had used by then is checked",
        ),
    ],
    ids=["raises", "exit status", "exit text", "segfault", "os._exit", "endless", "asleep"],
)
def test_what_was_used_before_the_end_is_checked(project, program, end, arguments, code, sentence):
    project.write("bad.py", f"{program}\n{end}\n")
    found, out, said = project.check("bad.py", *arguments)
    assert said == [f"pullback: {sentence}"]
    assert found == code
    assert "wrong: sign" in out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "no custom gradient to check: bad.py uses none"),
        (SQUARE, "no custom gradient to check: bad.py defines 1 but calls none"),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()",
            "bad.py ended with exit status 2; it may need arguments: put them after --",
        ),
        (
            "import os\nos.kill(os.getpid(), 11)",
            f"bad.py crashed (SIGSEGV) {LOST}: 0 call(s) were recorded",
        ),
    ],
    ids=["no rules", "no calls", "needs arguments", "crashes first"],
)
def test_nothing_to_check_is_said(project, text, sentence):
    project.write("bad.py", text)
    code, out, said = project.check("bad.py")
    assert said == [f"pullback: {sentence}"]
    assert code == 2
    assert out.strip() == ""


def test_refused_before_anything_starts(project):
    project.write("broken.py", "def f(:")
    project.write("notes.txt", "hello")
    code, out, said = project.check(
        "broken.py", "notes.txt", "gone.py", "gone.module", "json:gone", "json:__name__"
    )
    assert code == 2
    assert out.strip() == ""
    assert said == [
        "pullback: broken.py has a syntax error (broken.py:1: invalid syntax)",
        "pullback: notes.txt is not a Python file",
        "pullback: gone.py does not exist",
        "pullback: no file, folder or module is named gone.module",
        "pullback: json has no gone",
        "pullback: json:__name__ is no function but a str",
    ]


def test_wrong_use_is_told(project):
    assert project.run("check").returncode == 2
    assert project.run("check", "--calls", "0", "x.py").returncode == 2
    version = project.run("--version", afresh=True)
    assert version.returncode == 0
    assert version.stdout.startswith("pullback, version ")
    assert "Exit codes" in project.run("check", "--help").stdout


def test_a_report_that_cannot_be_written_is_told(project):
    code, _, said = project.check("gone.py", "--json", "no/such/folder.json")
    assert code == 2
    assert said[-1].startswith("pullback: no/such/folder.json cannot be written")


def test_without_click_the_command_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from pullback.cli import main; main(['--version'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install click rich" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_be_built_again_is_counted(project):
    project.write("helper.py", SQUARE)
    project.write(
        "dies.py",
        """
        import os
        import jax, jax.numpy as jnp
        from helper import square

        def main():
            @jax.custom_gradient
            def hidden(x):
                return x * x, lambda dy: 2 * x * dy

            hidden(jnp.ones(2))
            square(jnp.ones(2))
            os.abort()

        if __name__ == "__main__":
            main()
        """,
    )
    code, out, said = project.check("dies.py")
    assert code == 2
    assert "1 rule: 1 wrong" in out
    assert said == [
        f"pullback: dies.py crashed (SIGABRT) {LOST}: 2 call(s) were recorded",
        "pullback: 1 recorded call(s) of dies.py are lost: their rules could not be built again",
    ]


def test_a_rule_that_crashes_under_the_checker_loses_no_other(project):
    project.write(
        "evil.py",
        f"""{SQUARE}
@jax.custom_gradient
def evil(x):
    if x.dtype == "float64":  # the checker's: the program has none
        os.abort()
    return x * x, lambda dy: 2 * x * dy

square(X)
evil(X / 2)
""",
    )
    code, out, said = project.check("evil.py")
    assert code == 2
    assert "wrong: sign" in out
    assert said == ["pullback: evil.py crashed (SIGABRT) while evil was checked"]
