"""Run the programs over public packages, and compare what `pullback check` says with what was called.

A program fails the corpus when a rule that it called is not in the report, when a rule is called wrong that
is not listed in `real.toml`, or when the command breaks. The table in `docs/wild.md` is made here.

    python run.py [PACKAGE...] [--write] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "wild.md"
ORDER = ("wrong", "not checked", "undecided", "as declared", "right")
FRAMEWORKS = ("torch", "jax", "tensorflow")


@dataclass
class Outcome:
    """Hold what was found for one program."""

    package: str
    framework: str
    version: str
    called: dict[str, str] = field(default_factory=dict)  # place: name
    seen: dict[str, str] = field(default_factory=dict)  # place: verdict
    rows: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        """Count the places with a verdict."""
        return sum(v == verdict for v in self.seen.values())

    def line(self) -> str:
        """Give the row of the table."""
        numbers = (len(self.called), len(self.called.keys() & self.seen.keys()), self.count("right"),
                   self.count("as declared"), self.count("wrong"), self.count("undecided"),
                   self.count("not checked"))  # fmt: skip
        return "| " + " | ".join(map(str, (self.package, self.version, self.framework, *numbers))) + " |"


def versions() -> dict[str, str]:
    """Read the pinned version of each distribution, by the name of its module."""
    pins = {}
    for line in (HERE / "requirements.txt").read_text().splitlines():
        name, _, rest = line.partition("==")
        version, _, module = rest.partition("#")
        if rest:
            pins[module.strip() or name.strip().replace("-", "_")] = f"{name.strip()} {version.strip()}"
    return pins


def verdict_of(row: dict[str, Any]) -> str:
    """Give the verdict of a row, or that it is as declared, or that it was not checked."""
    if any(finding["reason"] in ("not run", "not recorded") for finding in row["findings"]):
        return "not checked"
    if row["verdict"] == "right" and row["intent"].startswith("different on purpose"):
        return "as declared"
    return str(row["verdict"])


def place_of(rule: dict[str, Any]) -> str:
    """Tell rules apart: by where they are written, or by name where that is not known."""
    return f"{os.path.realpath(rule['path'])}:{rule['line']}" if rule["path"] else str(rule["name"])


def framework_of(program: pathlib.Path) -> str:
    """Tell on which framework a program runs."""
    text = program.read_text()
    return next(f for f in FRAMEWORKS if f"import {f}" in text)


def run(program: pathlib.Path, keep: pathlib.Path) -> Outcome:
    """Run one program twice: listened to, and checked."""
    package = program.stem.removeprefix("use_")
    outcome = Outcome(package, framework_of(program), versions()[package].split()[1])
    truth, report = keep / f"{package}.truth.json", keep / f"{package}.report.json"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH")))
    )
    options = ["--seed", "0", "--json", str(report)]
    commands = {
        "program": [sys.executable, str(HERE / "listener.py"), str(truth), str(program)],
        "check": [sys.executable, "-m", "pullback", "check", str(program), *options],
    }
    for what, command in commands.items():
        with (keep / f"{package}.{what}.log").open("w") as log:
            try:
                code = subprocess.run(
                    command, cwd=HERE, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=3600
                ).returncode
            except subprocess.TimeoutExpired:
                outcome.problems.append(f"the {what} did not end")
                return outcome
        if code not in ((0,) if what == "program" else (0, 1, 2)):
            outcome.problems.append(f"the {what} ended with {code}")
    if report.exists():
        document = json.loads(report.read_text())
        outcome.rows = document["rules"]
        outcome.problems += document["problems"]
    else:
        outcome.problems.append("there is no report")
    if truth.exists():
        named = {row["name"]: place_of(row) for row in outcome.rows}
        for call in json.loads(truth.read_text()):
            name = call["name"]
            outcome.called[place_of(call) if call["path"] else named.get(name, name)] = name
    for row in outcome.rows:
        place = place_of(row)
        verdicts = (verdict_of(row), outcome.seen.get(place, "right"))
        outcome.seen[place] = min(verdicts, key=ORDER.index)
    return outcome


def faults(outcome: Outcome, real: dict[str, Any]) -> list[str]:
    """List what is not as it should be."""
    found = [f"{outcome.package}: {problem}" for problem in outcome.problems]
    for place in outcome.called.keys() - outcome.seen.keys():
        found.append(f"{outcome.package}: {outcome.called[place]} was called and not seen ({place})")
    for place in outcome.seen.keys() - outcome.called.keys():
        found.append(f"{outcome.package}: seen and not called: {place}")
    for row in outcome.rows:
        if verdict_of(row) == "wrong" and row["qualified"] not in real:
            causes = ", ".join(sorted({f["cause"] or f["probe"] for f in row["findings"]}))
            found.append(f"{outcome.package}: {row['name']} is called wrong ({causes})")
    return found


def write(outcomes: list[Outcome], real: dict[str, Any]) -> None:
    """Put the rows into the table, where other programs keep theirs, and list what is wrong below it."""
    head, begin, rest = PAGE.read_text().partition("<!-- made by tests/wild/run.py -->\n")
    made, end, tail = rest.partition("<!-- until here -->\n")
    rows = {line.split("|")[1].strip(): line for line in made.splitlines() if line.startswith("| ")}
    title = rows.pop("package")
    rows.pop("---", None)
    rows.update({outcome.package: outcome.line() for outcome in outcomes})
    programs = {p.stem.removeprefix("use_"): p for p in (HERE / "programs").glob("use_*.py")}
    for package, program in programs.items():
        unrun = (package, versions()[package].split()[1], framework_of(program), *["–"] * 7)
        rows.setdefault(package, "| " + " | ".join(unrun) + " |")

    def order(package: str) -> tuple[int, str]:
        return FRAMEWORKS.index(rows[package].split("|")[3].strip()), package

    table = [title, "|" + " --- |" * (title.count("|") - 1)]
    table += [rows[package] for package in sorted(programs, key=order)]
    listed = []
    for name, said in real.items():
        which = ("first", "second")[said["order"] - 1]
        shown = f"`tests/wild/real/{said['reproduction']}`"
        listed.append(f"- `{name}`, {which} order: {said['says']}. {shown}")
    words = ["", "Wrong in the versions above, by our judgement:", "", *listed]
    PAGE.write_text(head + begin + "\n".join([*table, *words]) + "\n" + end + tail)


def main() -> int:
    """Run the programs that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--write", action="store_true", help="Make the table in docs/wild.md.")
    parser.add_argument("--keep", type=pathlib.Path, help="Keep reports and logs in a folder.")
    given = parser.parse_args()
    keep = given.keep or pathlib.Path(tempfile.mkdtemp())
    keep.mkdir(parents=True, exist_ok=True)
    real = tomllib.loads((HERE / "real.toml").read_text())
    outcomes, found = [], []
    for program in sorted((HERE / "programs").glob("use_*.py")):
        if given.packages and program.stem.removeprefix("use_") not in given.packages:
            continue
        outcome = run(program, keep)
        print(outcome.line(), flush=True)
        for fault in faults(outcome, real):
            print(f"    {fault}", flush=True)
            found.append(fault)
        outcomes.append(outcome)
    if given.write:
        write(outcomes, real)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
