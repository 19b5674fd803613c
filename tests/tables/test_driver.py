"""The driver of the tables goes on behind what it knows, and behind a call that ends its process."""

import json
import os
import pathlib
import subprocess
import sys

DRIVER = pathlib.Path(__file__).parent / "driver.py"
FEW = """
import os
import driver

class Ends:
    args, kwargs = (), {}

    @property
    def function(self):
        os._exit(3)

class Spins(Ends):
    @property
    def function(self):
        while True:
            pass

def some(ending):
    yield driver.Call(abs, (1,))
    yield ending
    yield driver.Call(abs, (2,))

def table():
    return driver.Table("Few", "1", {"f": lambda: some(Ends()), "g": lambda: some(Spins())}, {})
"""


def test_a_call_that_ends_its_process_or_spins_costs_itself_alone_and_a_later_run_goes_on(tmp_path):
    (tmp_path / "few.py").write_text(FEW)
    kept = tmp_path / "rows"

    def rows(*options):
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, str(DRIVER), "few", "--timeout", "0.1", "--json", str(kept), *options]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        found = [json.loads(line) for line in kept.read_text().splitlines()]
        return [(row["call"], row["verdict"]) for row in found]

    few = [("f", "undecided"), ("f#1", "crash"), ("g", "undecided"), ("g#1", "crash")]
    assert rows("--samples", "2") == few
    assert rows("--resume") == [*few, ("f#2", "undecided"), ("g#2", "undecided")]
