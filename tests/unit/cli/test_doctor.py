"""`pullback doctor`: what works here, what does not and why. Old and broken frameworks are real packages."""

import json
import shutil
from pathlib import Path

import pytest

from pullback.doctor import Diagnosis, Found
from pullback.doctor.known import KNOWN
from pullback.doctor.show import as_text
from pullback.hosts import SUPPORTED

OLD = "__version__ = '0.3.0'\n"
BROKEN = "raise ImportError('libtorch.so: cannot open shared object file\\nand more lines')\n"
CRASHES = "import os\nos.abort()\n"
NEEDED = {"tensorflow": "2.16", "jax": "0.9", "torch": "2.6"}


@pytest.fixture
def stubs(project, monkeypatch):
    """Put packages in front of the installed ones."""

    def put(**texts):
        for name, text in texts.items():
            project.write(f"stubs/{name}/__init__.py", text)
        monkeypatch.setenv("PYTHONPATH", str(project.folder / "stubs"))

    return put


def test_old_broken_and_crashing_frameworks_are_told_apart(project, stubs):
    stubs(jax=OLD, torch=BROKEN, tensorflow=CRASHES)
    done = project.run("doctor")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("framework"))
    assert [line.split(maxsplit=3) for line in lines[start + 2 : start + 5]] == [
        ["tensorflow", "-", NEEDED["tensorflow"], "broken: its import crashed (SIGABRT)"],
        ["jax", "0.3.0", NEEDED["jax"], f"too old: 0.3.0 found, {NEEDED['jax']} needed"],
        [
            "torch",
            "-",
            NEEDED["torch"],
            "broken: ImportError: libtorch.so: cannot open shared object file",
        ],
    ]
    assert lines[-1].startswith("no host works: install one of them, for example pip install ")
    assert "Traceback" not in done.stderr


def test_a_missing_framework_and_a_working_one(project, stubs):
    shutil.rmtree(project.folder / "stubs", ignore_errors=True)
    # What Python raises for a package that is not there.
    stubs(tensorflow="raise ModuleNotFoundError(name='tensorflow')\n", torch="x = 1\n")
    done = project.run("doctor", "--json")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert data["schema"] == 1
    assert {"pullback", "Python", "NumPy", "platform"} <= set(data["versions"])
    found = {host["name"]: host for host in data["hosts"]}
    assert (found["tensorflow"]["status"], found["tensorflow"]["reason"]) == ("missing", "not installed")
    assert found["torch"]["status"] == "broken"
    assert found["torch"]["reason"].endswith("__init__.py has no __version__")
    assert found["jax"]["status"] == "works"
    assert found["jax"]["known"]  # the tests are run right now
    assert not found["tensorflow"]["known"]
    capabilities = found["jax"]["capabilities"]
    for name in ("reverse", "forward", "second order", "third order", "export", "override"):
        assert capabilities[name] == "yes", name
    assert capabilities["compiled"] == "jit"
    assert capabilities["dtypes"] == "float64, float32, bfloat16, float16"


def test_the_whole_picture_as_text():
    capabilities = {"reverse": "yes", "compiled": "jit"}
    diagnosis = Diagnosis(
        {"pullback": "1.0", "Python": "3.11.7", "NumPy": "2.4.6"},
        (
            Found("tensorflow", "works", "2.16", "2.21.0", capabilities={**capabilities, "export": "no"}),
            Found("jax", "works", "0.9", "0.12.0", capabilities=capabilities),
            Found("torch", "missing", "2.6", reason="not installed"),
        ),
    )
    assert as_text(diagnosis).splitlines() == [
        "pullback  1.0",
        "Python    3.11.7",
        "NumPy     2.4.6",
        "",
        "framework   version  needed  host",
        "----------  -------  ------  --------------------------------------------",
        "tensorflow  2.21.0   2.16    works",
        "jax         0.12.0   0.9     works",
        "torch       -        2.6     not installed: pip install 'pullback[torch]'",
        "",
        "capability  tensorflow  jax",
        "----------  ----------  ---",
        "reverse     yes         yes",
        "compiled    jit         jit",
        "export      no          -",
        "",
        "2 of 3 hosts work: tensorflow, jax",
        "tensorflow 2.21, Python 3.11, NumPy 2: the tests were run with it",
        "jax 0.12, Python 3.11, NumPy 2: the tests were not run with it, but with "
        + "; ".join(
            f"{k.version}, Python {k.python}, NumPy {k.numpy}" for k in KNOWN if k.framework == "jax"
        ),
    ]
    assert diagnosis.exit_code == 0


def test_on_a_terminal_it_says_the_same_words():
    import io

    from pullback.doctor.show import show

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    found = Found("jax", "works", "0.9", "0.10.2", capabilities={"override": "wrong", "export": "yes"})
    show(
        Diagnosis(
            {"pullback": "1.0", "Python": "3.11.7", "NumPy": "2.4.6"},
            (found, Found("torch", "old", "2.6", "1.0", reason="1.0 found")),
        ),
        stream,
    )
    for word in ("pullback", "works", "too old: 1.0 found", "override", "wrong", "1 of 2 hosts work: jax"):
        assert word in stream.getvalue()


def test_the_documentation_has_the_table_of_what_is_known():
    page = (Path(__file__).parents[3] / "docs" / "hosts.md").read_text(encoding="utf-8")
    rows = page.split("<!-- known -->")[1].split("<!-- until here -->")[0].strip().splitlines()[2:]
    assert [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows] == list(KNOWN)


def test_what_is_known_is_supported_and_told_once():
    assert len(set(KNOWN)) == len(KNOWN)
    for known in KNOWN:
        needed = SUPPORTED[known.framework].needed
        assert [int(part) for part in known.version.split(".")] >= [int(part) for part in needed.split(".")]
