"""The report on a terminal: a block a failure, the table of rules, what to type next; else text."""

from __future__ import annotations

import sys
from typing import TextIO

from pullback.report.block import HEADINGS, table
from pullback.report.entry import Entry, Run, worst
from pullback.report.text import ahead, row, summary
from pullback.report.text import blocks as said

WIDE = 120  # columns that the whole table needs
COLOURS = {"right": "green", "wrong": "bold red", "undecided": "yellow"}


def show(run: Run, stream: TextIO | None = None, *, blocks: bool = True) -> None:
    """Print a run: with colour and borders on a terminal, as text otherwise; `blocks` says what is wrong."""
    stream = stream or sys.stdout
    told = said(run) if blocks else []
    if stream.isatty():
        _rich(run, told, stream)
    else:
        say(_joined(run, told), stream)


def say(text: str, stream: TextIO) -> None:
    """Print text; a pipe may speak an encoding without mathematical signs."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()


def as_text(run: Run) -> str:
    """Write a run as text: what is wrong, then the table, which is what a reader sees first."""
    return _joined(run, said(run))


def _joined(run: Run, told: list[tuple[Entry, str]]) -> str:
    parts = [text for _, text in told]
    if run.entries:
        parts += [table([row(group) for group in run.rules()]), summary(run)]
    return "\n\n".join(parts)


def _rich(run: Run, told: list[tuple[Entry, str]], stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    for entry, text in told:
        console.print(Rule(style=COLOURS[entry.report.verdict]))
        # No border and no line break of ours: what is there to paste must paste.
        console.print(Text(text), soft_wrap=True)
    if run.entries:
        shown = range(len(HEADINGS)) if console.width >= WIDE else (0, 1, 3, 6)
        rows = Table(box=box.SIMPLE_HEAD)
        for i in shown:
            rows.add_column(HEADINGS[i], overflow="fold")
        for group in run.rules():
            cells = row(group)
            style = COLOURS[worst(group).report.verdict]
            rows.add_row(*(Text(cells[i], style=style if i == 1 else "") for i in shown))
        console.print(rows)
        for line in (summary(run), *ahead(run)):
            console.print(Text(line), soft_wrap=True)
