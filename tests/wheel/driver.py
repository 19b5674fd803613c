"""Build the source distribution and the wheel, and try the wheel where nothing else is installed.

    python tests/wheel/driver.py [--keep FOLDER]

What must hold: the wheel that comes of the source distribution is the one that comes of the tree, byte for
byte of every file; and in an empty environment, away from the tree and without a framework, the command
works and says what to install. `--keep` copies what was built.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder: Path, *options: str) -> list[Path]:
    """Build, and give what came of it."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, *options, ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return sorted(folder.iterdir())


def contents(wheel: Path) -> dict[str, bytes]:
    """Read a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Empty:
    """An environment with the wheel and what it asks for, and a folder that is not the tree."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder / "elsewhere"
        self.folder.mkdir()
        venv.create(folder / "venv", with_pip=True)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.run("python", "-m", "pip", "install", "--quiet", str(wheel))

    def run(self, *command: str, code: int = 0) -> str:
        """Run a program of the environment, which must end with this code; give what it printed."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.folder,
            env={**env, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr


def smoke(empty: Empty) -> None:
    """Ask the command what a newcomer asks first."""
    where = empty.run("python", "-c", "import pullback; print(pullback.__file__)").strip()
    assert str(ROOT / "src") not in where, where
    doctor = empty.run("pullback", "doctor", code=1)
    assert "not installed: pip install 'pullback[tensorflow]'" in doctor, doctor
    assert doctor.splitlines()[-1].startswith("no host works: install one of them"), doctor
    data = json.loads(empty.run("pullback", "doctor", "--json", code=1))
    assert {host["status"] for host in data["hosts"]} == {"missing"}, data
    assert "`CotangentShapeError`" in empty.run("pullback", "explain", "CotangentShapeError")
    assert "upstream-ignored: " in empty.run("pullback", "explain", "upstream-ignored")
    assert "wrote softplus.py and test_softplus.py" in empty.run("pullback", "new", "softplus")
    said = empty.run("pullback", "check", "softplus.py:softplus", code=2)
    assert "softplus.py:softplus could not be checked: ModuleNotFoundError: No module named" in said, said
    rule = "import pullback as pb; pb.custom_gradient(lambda x: (x, lambda dy: dy)); print(pb.__version__)"
    assert empty.run("python", "-c", rule).strip() == data["versions"]["pullback"]
    empty.run("python", "-m", "pullback", "--help")


def main(arguments: list[str]) -> None:
    """Build, compare, install, ask."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = sorted(build(folder / "both"), key=lambda path: path.suffix != ".whl")
        (direct,) = build(folder / "direct", "--wheel")
        one, other = contents(wheel), contents(direct)
        assert sorted(one) == sorted(other), sorted(set(one) ^ set(other))
        assert not [file for file in one if one[file] != other[file]]
        assert {"pullback/pages/causes.md", "pullback/pages/errors.md", "pullback/py.typed"} <= set(one)
        print(f"{source.name} builds the same {wheel.name} as the tree: {len(one)} files")
        smoke(Empty(folder, wheel))
        print(f"{wheel.name} works in an empty environment")
        if "--keep" in arguments:
            kept = Path(arguments[arguments.index("--keep") + 1])
            kept.mkdir(exist_ok=True)
            for path in (wheel, source):
                shutil.copy(path, kept)


if __name__ == "__main__":
    main(sys.argv[1:])
