"""Running the command as a user does: a process of its own, in a folder with the files of one test."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[3] / "src")


class Project:
    """A folder of small files, and the command run in it."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run(self, *arguments):
        """Run the command."""
        return self.start("-m", "pullback", *arguments)

    def python(self, *arguments):
        """Run Python without us: what it prints."""
        return self.start(*arguments).stdout.decode(errors="replace")

    def path(self):
        """Give the path on which this pullback is found."""
        return os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])

    def start(self, *arguments):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": self.path(), "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            timeout=300,
        )

    def check(self, *arguments):
        """Check with a fixed seed: exit code, standard output, our own sentences on standard error."""
        done = self.run("check", "--seed", "1", *arguments)
        lines = done.stderr.decode(errors="replace").splitlines()
        said = [line for line in lines if line.startswith("pullback: ")]
        return done.returncode, done.stdout.decode(errors="replace"), said


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("project"))
