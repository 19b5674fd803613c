"""Running the command as a user does: a process of its own, in a folder with the files of one test."""

import os
import subprocess
import sys
import textwrap

import pytest
import warm


class Project:
    """A folder of small files, and the command run in it."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run(self, *arguments, afresh=False):
        """Run the command; afresh in a process that has imported nothing, where its start is asked for."""
        if afresh:
            done = self.start("-m", "pullback", *arguments)
            return warm.Done(
                done.returncode, *(s.decode(errors="replace") for s in (done.stdout, done.stderr))
            )
        text = self.text(arguments)
        return warm.command(*arguments, text=text, env={"PYTHONPATH": self.path()}, cwd=self.folder)

    def text(self, arguments):
        """Give the text of the files among the arguments."""
        named = [self.folder / argument.partition(":")[0] for argument in arguments]
        files = [file for path in named for file in (path.rglob("*.py") if path.is_dir() else [path])]
        return "\n".join(file.read_text("utf-8") for file in files if file.suffix == ".py" and file.is_file())

    def python(self, *arguments):
        """Run Python without us: what it prints."""
        return self.start(*arguments).stdout.decode(errors="replace")

    def path(self):
        """Give the path on which this pullback is found."""
        return os.pathsep.join([warm.SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])

    def start(self, *arguments):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": self.path(), "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            timeout=300,
        )

    def check(self, *arguments, afresh=False):
        """Check with a fixed seed: exit code, standard output, our own sentences on standard error."""
        done = self.run("check", "--seed", "1", *arguments, afresh=afresh)
        said = [line for line in done.stderr.splitlines() if line.startswith("pullback: ")]
        return done.returncode, done.stdout, said


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("project"))
