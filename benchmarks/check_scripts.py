"""What `pullback check script` costs beside the script itself, on programs of the kind that users have.

The bar: 1.3 times the script, and some seconds for each of its rules. Prints a row a script; exits with 1
when a bar is missed. `--repeat N` takes the best of N runs, `--cpu` counts CPU time: on a busy machine. A
part of a script's name chooses.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FACTOR = 1.3
SECONDS = {"torch": 0.5, "tensorflow": 1.0, "jax": 1.5}  # a rule
SCRIPTS = Path(__file__).parent / "scripts"


def seconds(*arguments: str, cpu: bool) -> float:
    """Run Python, and measure it."""
    clock = cpu_time if cpu else time.perf_counter
    start = clock()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    took = clock() - start
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return took


def cpu_time() -> float:
    """Give the CPU time of all processes that have ended."""
    used = os.times()
    return used.children_user + used.children_system


def measured(script: Path, repeat: int, cpu: bool) -> tuple[float, float, int, list[str]]:
    """Give the seconds of a script, those of its check, the number of its rules, and their verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = ("-m", "pullback", "check", "--seed", "1", "--json", report, str(script))
        alone = min(seconds(str(script), cpu=cpu) for _ in range(repeat))
        checked = min(seconds(*command, cpu=cpu) for _ in range(repeat))
        rules = json.loads(Path(report).read_text(encoding="utf-8"))["rules"]
    return (
        alone,
        checked,
        len({(r["path"], r["line"], r["name"]) for r in rules}),
        [r["verdict"] for r in rules],
    )


def main() -> int:
    """Measure every script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    missed = 0
    print(f"{'script':<22}{'alone':>8}{'checked':>9}{'rules':>7}{'bar':>8}{'of bar':>8}  verdicts")
    for script in sorted(s for s in SCRIPTS.glob("*.py") if options.part in s.stem):
        alone, checked, rules, verdicts = measured(script, options.repeat, options.cpu)
        bar = FACTOR * alone + SECONDS[script.stem.partition("_")[0]] * rules
        missed += checked > bar
        said = ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts)))
        row = f"{script.stem:<22}{alone:>7.2f}s{checked:>8.2f}s{rules:>7}{bar:>7.2f}s{checked / bar:>8.2f}"
        print(f"{row}  {said}", flush=True)
    print(f"{missed} missed" if missed else "every bar is met")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
