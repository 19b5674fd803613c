"""Processes that have imported TensorFlow when they start.

The import takes seconds, and is the same each time. One process makes it and nothing else, and is forked for
every program: each runs in a process of its own, that no other program has touched. TensorFlow starts its
threads with its first operation, which is behind the fork.
"""

import atexit
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

SOURCE = str(Path(__file__).parents[2] / "src")


class Done(NamedTuple):
    """What is left of a program."""

    returncode: int
    stdout: str
    stderr: str


def run(script, *arguments, env=None, cwd=None, deprecated="default"):
    """Run a script as Python would; `deprecated` says what becomes of its own calls of what is deprecated."""
    env = os.environ | {"PYTHONPATH": SOURCE, "PYTHONIOENCODING": "utf-8"} | (env or {})
    if not re.search(r"^\s*(import|from) (.*, )?(tensorflow|keras)\b", Path(script).read_text("utf-8"), re.M):
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
        server = _server()
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        returncode = int(server.stdout.readline())
        return Done(returncode, *(Path(path).read_text("utf-8") for path in job["streams"]))


@functools.cache
def _server():
    """Start the process that is forked, once for each test process."""
    env = os.environ | {"PYTHONPATH": SOURCE, "PYTHONIOENCODING": "utf-8"}
    server = subprocess.Popen(
        [sys.executable, __file__], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    atexit.register(server.communicate)  # it ends when its input does
    return server


def _serve():
    """Fork for every job; return the job in each fork."""
    import tensorflow  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()


if __name__ == "__main__":
    import runpy
    import warnings

    job = _serve()
    for target, path in enumerate([os.devnull, *job["streams"]]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), target)
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    warnings.filterwarnings(job["deprecated"], category=DeprecationWarning, module="__main__$")
    sys.argv = job["argv"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
