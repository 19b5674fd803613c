"""Processes that have imported their frameworks when they start.

The imports take seconds, and are the same each time. One process makes them and nothing else, and is forked
for every program that imports these frameworks and no other: each runs in a process of its own, that no
other program has touched. Frameworks start their threads with their first operation, which is behind the
fork. What the imports made is out of sight of the garbage collector: to take it apart at the end costs a
second more.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

SOURCE = str(Path(__file__).parents[2] / "src")
FRAMEWORKS = {"tensorflow": "tensorflow|keras", "jax": "jax", "torch": "torch"}  # and who imports them


class Done(NamedTuple):
    """What is left of a program."""

    returncode: int
    stdout: str
    stderr: str


def run(script, *arguments, env=None, cwd=None, deprecated="default"):
    """Run a script as Python would; `deprecated` says what becomes of its own calls of what is deprecated."""
    env = os.environ | {"PYTHONPATH": SOURCE, "PYTHONIOENCODING": "utf-8"} | (env or {})
    text = Path(script).read_text("utf-8")
    frameworks = [
        name
        for name, words in FRAMEWORKS.items()
        if re.search(rf"^\s*(import|from) (.*, )?({words})\b", text, re.M)
    ]
    if not frameworks:
        filters = f"{deprecated}::DeprecationWarning:__main__"
        done = subprocess.run(
            [sys.executable, "-W", filters, script, *arguments],
            env=env,
            cwd=cwd,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "argv": [str(script), *map(str, arguments)],
            "env": env,
            "cwd": str(cwd or os.getcwd()),
            "deprecated": deprecated,
            "streams": [os.path.join(folder, name) for name in ("stdout", "stderr")],
        }
        server = _server(*frameworks)
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        returncode = int(server.stdout.readline())
        return Done(returncode, *(Path(path).read_text("utf-8") for path in job["streams"]))


@functools.cache
def _server(*frameworks):
    """Start the process that is forked, once for each test process and these frameworks."""
    env = os.environ | {"PYTHONPATH": SOURCE, "PYTHONIOENCODING": "utf-8"}
    server = subprocess.Popen(
        [sys.executable, __file__, *frameworks],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    atexit.register(server.communicate)  # it ends when its input does
    return server


def _serve():
    """Fork for every job; return the job in each fork."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX warns of threads, which it has not started
            child = os.fork()
        if not child:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()


if __name__ == "__main__":
    import runpy

    job = _serve()
    for target, path in enumerate([os.devnull, *job["streams"]]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), target)
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    warnings.filterwarnings(job["deprecated"], category=DeprecationWarning, module="__main__$")
    sys.argv = job["argv"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
