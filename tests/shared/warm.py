"""Processes that have imported their frameworks when they start.

The imports take seconds, and are the same each time. Forks of one process import a framework each, forks of
these a second one, or pullback: they import and do nothing else. One is forked for every program that names
what it has imported and no more: each runs in a process of its own, that no other program has touched.
Frameworks start their threads with their first operation, which is behind the fork. What the imports made is
out of sight of the garbage collector: to take it apart at the end costs a second more.

The command `pullback` is such a program, too, and the processes that it starts are forks of its own. Who asks
how a process starts, asks in one that is started.
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
import traceback
import warnings
from multiprocessing import popen_fork
from pathlib import Path
from typing import NamedTuple

SOURCE = str(Path(__file__).parents[2] / "src")
# what is imported, in this order, and by which words a program names it
IMPORTED = {"tensorflow": "tensorflow|keras", "jax": "jax", "torch": "torch", "pullback": "pullback"}
# and what a check imports beside it
BESIDE = {
    "jax": ["scipy.linalg"],
    "torch": ["torch._dynamo"],
    "pullback": ["pullback.cli", "pullback.record.child"],
}


class Done(NamedTuple):
    """What is left of a program."""

    returncode: int
    stdout: str
    stderr: str


def run(script, *arguments, env=None, cwd=None, deprecated="default", modules=None):
    """Run a script as Python would; `deprecated` says what becomes of its own calls of what is deprecated.

    What is imported when it starts is what its text names, where nothing is given.
    """
    if modules is None:
        modules = imported(Path(script).read_text("utf-8"))
    return _forked(modules, [script, *arguments], env, cwd, deprecated=deprecated)


def command(*arguments, text="", env=None, cwd=None):
    """Run the command `pullback`, on targets with this text."""
    return _forked(imported(f"{text}\nimport pullback"), ["pullback", *arguments], env, cwd, command=True)


def imported(text):
    """List what a program imports by its name."""
    return [
        name
        for name, words in IMPORTED.items()
        if re.search(rf"^\s*(import|from) (.*, )?({words})\b", text, re.M)
    ]


def _surroundings(env):
    return os.environ | {"PYTHONPATH": SOURCE, "PYTHONIOENCODING": "utf-8"} | (env or {})


def _forked(modules, argv, env, cwd, **how):
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "modules": modules,
            "argv": list(map(str, argv)),
            "env": _surroundings(env),
            "cwd": str(cwd or os.getcwd()),
            "streams": [os.path.join(folder, name) for name in ("stdout", "stderr")],
            **how,
        }
        server = _server()
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        returncode = int(server.stdout.readline())
        streams = (Path(path).read_bytes().decode("utf-8", "replace") for path in job["streams"])
        return Done(returncode, *streams)


@functools.cache
def _server():
    """Start the process that is forked, once for each test process."""
    server = subprocess.Popen(
        [sys.executable, __file__],
        env=_surroundings(None),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    atexit.register(server.communicate)  # it ends when its input does
    return server


def _serve():
    """Fork for every job, behind the imports that it asks for; return the job in each fork."""
    asked, told, level, further = sys.stdin, sys.stdout, 0, {}
    while line := asked.readline():
        job = json.loads(line)
        if level == len(job["modules"]):
            child = _fork()
            if not child:
                return job
            answer = f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n"
        else:
            name = job["modules"][level]
            if name not in further:
                (read, ask), (hear, tell) = os.pipe(), os.pipe()
                if not _fork():
                    os.close(ask)
                    for module in (name, *BESIDE.get(name, ())):
                        importlib.import_module(module)
                    gc.freeze()
                    asked, told, level, further = os.fdopen(read), os.fdopen(tell, "w"), level + 1, {}
                    continue
                os.close(read), os.close(tell)
                further[name] = os.fdopen(ask, "w"), os.fdopen(hear)
            ask, hear = further[name]
            print(line, end="", file=ask, flush=True)
            answer = hear.readline()
        print(answer, end="", file=told, flush=True)
    for ask, _ in further.values():
        ask.close()
    for _ in further:
        os.wait()
    sys.exit()


def _fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of threads, which it has not started
        return os.fork()


class Forked(popen_fork.Popen):
    """Stand for a `Popen` of the command: `python -c CODE …` in a fork of it."""

    def __init__(self, arguments, stdout, stderr, process_group=None, preexec_fn=None):
        self.arguments = arguments
        self.streams = {1: stdout, 2: stderr}
        self.apart = preexec_fn is not None or process_group is not None  # by Python 3.10, and later
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as below: of threads
            super().__init__(self)

    def _bootstrap(self, parent_sentinel):
        if self.apart:
            os.setpgrp()
        for target, stream in self.streams.items():
            if stream is not None:
                file = os.open(os.devnull, os.O_RDWR) if stream is subprocess.DEVNULL else stream.fileno()
                os.dup2(file, target)
        _, option, code, *sys.argv[1:] = self.arguments
        sys.argv[0] = option
        sys.path.insert(0, "")
        try:
            exec(code, {"__name__": "__main__"})
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
        atexit._run_exitfuncs()
        return status


def _command():
    """Be the command."""
    from pullback import cli
    from pullback.record import process

    process.subprocess = type(subprocess)("subprocess")
    vars(process.subprocess).update(vars(subprocess), Popen=Forked)
    cli.main()


if __name__ == "__main__":
    import runpy

    job = _serve()
    for target, path in enumerate([os.devnull, *job["streams"]]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), target)
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    sys.argv = job["argv"]
    sys.path[:1] = job["env"]["PYTHONPATH"].split(os.pathsep)
    if job.get("command"):
        _command()
    else:
        warnings.filterwarnings(job["deprecated"], category=DeprecationWarning, module="__main__$")
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
