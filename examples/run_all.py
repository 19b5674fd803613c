"""Run every example in a process of its own, one line each; fail when one fails."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def examples():
    """List the examples, in the order of their names."""
    return sorted(path for path in HERE.rglob("*.py") if path.name != Path(__file__).name)


def run(path):
    """Run one example; give its exit status and all it printed."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(path)],
        env=os.environ | quiet,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


def question(path):
    """Give the question that an example answers: its first line."""
    return path.read_text(encoding="utf-8").splitlines()[0].strip('"')


if __name__ == "__main__":
    failed = 0
    for example in examples():
        status, printed = run(example)
        failed += status != 0
        name = example.relative_to(HERE).as_posix()
        print(f"{'ok    ' if status == 0 else 'FAILED'} {name:44} {question(example)}", flush=True)
        if status != 0:
            print(printed)
    sys.exit(1 if failed else 0)
