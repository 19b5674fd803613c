"""A hostile script, folder or signal: nothing is lost or left behind, and exit codes are as documented."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

# In JAX, whose import takes a fraction of the time: none of this is the affair of a framework.
SQUARE = """
import jax, jax.numpy as jnp

@jax.custom_gradient
def square(x):
    return x * x, lambda dy: -2 * x * dy

X = jnp.array([0.5, 2.0])
"""


@pytest.fixture
def command(project, monkeypatch):
    """Start the command as its own script does; temporary files go to a folder that can be looked into."""
    project.write("bin/pullback", "from pullback.cli import main\nmain()\n")
    temporary = project.folder / "temporary"
    temporary.mkdir(exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(temporary))

    def run(*arguments, folder=".", wait=True, keyboard=subprocess.DEVNULL):
        child = subprocess.Popen(
            [sys.executable, str(project.folder / "bin/pullback"), "check", "--seed", "1", *arguments],
            cwd=project.folder / folder,
            env={**os.environ, "PYTHONPATH": project.path()},
            stdin=keyboard,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if not wait:
            return child
        out, err = (stream.decode(errors="replace") for stream in child.communicate(timeout=300))
        return child.returncode, out, [line for line in err.splitlines() if line.startswith("pullback: ")]

    yield run
    assert list(temporary.glob("pullback*")) == []


def test_a_script_may_replace_close_and_remove_what_it_likes(project, command):
    for name in ("json", "click", "rich", "secrets", "hashlib", "tempfile"):
        project.write(f"hostile/{name}.py", "raise RuntimeError('it lies in the working folder only')")
    project.write("hostile/sub/json.py", "MINE = True")  # Python would find it first, and so does the script
    project.write(
        "hostile/sub/attack.py",
        f"""
import json, os, sys
assert json.MINE and sys.path[0] == os.path.dirname(__file__)
del sys.path[0], sys.modules["json"]
{SQUARE}
square(X)
print("as usual", flush=True)

import builtins, json, shutil, tempfile
def refused(*args, **kwargs):
    raise OSError("refused")
for name in os.listdir(tempfile.gettempdir()):
    shutil.rmtree(os.path.join(tempfile.gettempdir(), name))
json.dumps = json.dump = json.loads = os.write = os.open = os.makedirs = builtins.print = refused
json.JSONEncoder.encode = json.JSONEncoder.default = tempfile.mkdtemp = tempfile.TemporaryFile = refused
sys.stdout = sys.stderr = None
os.closerange(3, 100)
""",
    )
    code, out, said = command("sub/attack.py", "--json", "report.txt", folder="hostile")
    assert said == []
    assert out.startswith("as usual\n")
    assert "square  wrong: sign" in out
    assert code == 1


HOSTILE = "a\nb\x1b[31m\x1b]0;title\x07"
SHOWN = r"a\nb\x1b[31m\x1b]0;title\x07"


def test_hostile_names_are_shown_escaped_in_every_format(project, command):
    project.write(
        "names.py",
        f"""{SQUARE}
def named(x):
    return x * x, lambda dy: -2 * x * dy

named.__name__ = named.__qualname__ = {HOSTILE!r}
jax.custom_gradient(named)(X)
raise ValueError("\\udc80" + {HOSTILE!r})
""",
    )
    code, out, said = command(
        "names.py", "no such \x1b[31m\n.py", "--json", "n.json", "--junit", "n.xml", "--github"
    )
    data = json.loads((project.folder / "n.json").read_text(encoding="utf-8"))
    suite = ElementTree.parse(project.folder / "n.xml").getroot().find("testsuite")
    assert code == data["exit_code"] == 2
    assert {rule["name"] for rule in data["rules"]} == {SHOWN}
    assert suite.find("testcase").attrib["name"] == SHOWN
    for text in (out, *said, json.dumps(data)):
        assert all(c.isprintable() or c == "\n" for c in text)
    assert f"{SHOWN}  wrong: sign" in out
    assert len([line for line in out.splitlines() if line.startswith("::")]) == 3
    assert said == [
        "pullback: names.py raised ValueError: \\udc80a (names.py:15)",
        r"pullback: no such \x1b[31m\n.py does not exist",
    ]


SLOW = f"""
import os, subprocess, sys, time
{SQUARE}
@jax.custom_gradient
def slow(x):
    if x.dtype == "float64":  # the checker's: the program has none
        open("ready", "w").write(f"{{os.getpid()}} {{process.pid}}")
        time.sleep(1e6)
    return x * x, lambda dy: 2 * x * dy

process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1e6)"])
square(X), slow(X)
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def keyboards():
    """Give what stands for the keyboard: nothing, or a terminal."""
    here, there = pty.openpty()
    yield {"nothing": subprocess.DEVNULL, "terminal": there}
    os.close(here)
    os.close(there)


@pytest.mark.parametrize(
    ("name", "jobs", "keyboard"),
    [("SIGTERM", "1", "terminal"), ("SIGHUP", "1", "nothing"), ("SIGINT", "2", "nothing")],
)
def test_a_signal_ends_all_and_what_was_found_is_printed(project, command, keyboards, name, jobs, keyboard):
    number = getattr(signal, name)
    project.write("slow.py", SLOW)
    ready = project.folder / "ready"
    ready.unlink(missing_ok=True)
    child = command("slow.py", "--json", "slow.json", "-j", jobs, wait=False, keyboard=keyboards[keyboard])
    while not (ready.exists() and len(ready.read_text().split()) == 2):
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert b"square  wrong: sign" in out
    assert f"pullback: ended by {name}".encode() in err
    assert not any(map(alive, map(int, ready.read_text().split())))
    assert json.loads((project.folder / "slow.json").read_text())["exit_code"] == 128 + number
