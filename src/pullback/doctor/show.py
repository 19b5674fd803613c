"""The diagnosis on a terminal: versions, hosts, capabilities. Text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from pullback.doctor import Diagnosis, Found
from pullback.doctor.known import combination, sentence
from pullback.report.block import aligned

HEADINGS = ("framework", "version", "needed", "host")
COLOURS = {"works": "green", "missing": "dim", "old": "yellow", "broken": "bold red"}


def show(diagnosis: Diagnosis, stream: TextIO | None = None) -> None:
    """Print a diagnosis: with colour on a terminal, as text otherwise."""
    stream = stream or sys.stdout
    if stream.isatty():
        _rich(diagnosis, stream)
    else:
        stream.write(as_text(diagnosis) + "\n")
        stream.flush()


def as_text(diagnosis: Diagnosis) -> str:
    """Write a diagnosis as text."""
    parts = [aligned([tuple(pair) for pair in diagnosis.versions.items()])]
    parts.append(aligned([HEADINGS, *(row(found) for found in diagnosis.hosts)], ruled=True))
    working = [found for found in diagnosis.hosts if found.status == "works"]
    if working:
        parts.append(aligned(table(working), ruled=True))
    return "\n\n".join([*parts, advice(diagnosis)])


def row(found: Found) -> tuple[str, ...]:
    """Give one line of the table of hosts."""
    said = found.status if found.status == "works" else f"{found.status}: {found.reason}"
    if found.status == "missing":
        said = f"not installed: pip install 'pullback[{found.name}]'"
    elif found.status == "old":
        said = f"too old: {found.reason}"
    return (found.name, found.version or "-", found.needed, said)


def table(working: Sequence[Found]) -> list[tuple[str, ...]]:
    """Give the table of capabilities: one column a host."""
    names = list(dict.fromkeys(name for found in working for name in found.capabilities))
    heading = ("capability", *(found.name for found in working))
    return [heading, *((name, *(f.capabilities.get(name, "-") for f in working)) for name in names)]


def advice(diagnosis: Diagnosis) -> str:
    """Say how it stands, and of each working host whether the tests were run with it."""
    working = [found for found in diagnosis.hosts if found.status == "works"]
    if working:
        names = ", ".join(found.name for found in working)
        python, numpy = (diagnosis.versions[name] for name in ("Python", "NumPy"))
        tried = [sentence(combination(found.name, found.version, python, numpy)) for found in working]
        return "\n".join([f"{len(working)} of {len(diagnosis.hosts)} hosts work: {names}", *tried])
    return "no host works: install one of them, for example pip install 'pullback[tensorflow]'"


def _rich(diagnosis: Diagnosis, stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)

    def printed(headings: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
        drawn = Table(*headings, box=box.SIMPLE_HEAD)
        for cells in rows:
            drawn.add_row(*cells)
        console.print(drawn)

    for name, version in diagnosis.versions.items():
        console.print(Text.assemble((f"{name} ", "dim"), version), end="  ")
    console.print()
    hosts = [[*map(Text, row(f)[:3]), Text(row(f)[3], style=COLOURS[f.status])] for f in diagnosis.hosts]
    printed(HEADINGS, hosts)
    working = [found for found in diagnosis.hosts if found.status == "works"]
    if working:
        heading, *rows = table(working)
        printed(heading, [[Text(cells[0]), *map(_coloured, cells[1:])] for cells in rows])
    console.print(Text(advice(diagnosis)))


def _coloured(cell: str) -> Any:
    from rich.text import Text

    bad = cell.startswith("no") or "refused" in cell
    style = "green" if cell == "yes" else "bold red" if "wrong" in cell else "yellow" if bad else ""
    return Text(cell, style=style)
