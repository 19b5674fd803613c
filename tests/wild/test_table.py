"""The table of docs/wild.md is whole; the programs themselves need packages that the tests do not install."""

import re
from pathlib import Path

import pytest
import tomllib

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("use_*.py"))
PAGE = (HERE.parents[1] / "docs" / "wild.md").read_text(encoding="utf-8")
ROWS = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| ")}


def pinned():
    lines = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"([\w-]+)==([\w.]+)(?:  # (\w+))?", line) for line in lines]
    return {m[3] or m[1].replace("-", "_"): m[2] for m in found if m}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_has_a_row_and_a_version(program):
    package = program.stem.removeprefix("use_")
    assert ROWS[package].split("|")[2].strip() == pinned()[package]


def test_a_row_has_a_program():
    assert {*ROWS} - {"package", "---"} == {path.stem.removeprefix("use_") for path in PROGRAMS}


def test_what_is_wrong_has_a_reproduction_without_pullback():
    for said in tomllib.loads((HERE / "real.toml").read_text(encoding="utf-8")).values():
        text = (HERE / "real" / said["reproduction"]).read_text(encoding="utf-8")
        assert "import pullback" not in text
        assert said["reproduction"] in PAGE
