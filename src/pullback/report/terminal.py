"""The report on a terminal: a table of the rules, then one block a failure. Plain text elsewhere."""

from __future__ import annotations

import sys
from typing import TextIO

from pullback.report.entry import Run, worst
from pullback.report.text import HEADINGS, blocks, row, summary

WIDE = 120  # columns that the whole table needs
COLOURS = {"right": "green", "wrong": "bold red", "undecided": "yellow"}


def show(run: Run, stream: TextIO | None = None) -> None:
    """Print a run: with colour and borders on a terminal, plain otherwise."""
    stream = stream or sys.stdout
    if stream.isatty():
        _rich(run, stream)
    else:
        text = plain(run) + "\n"
        # A pipe may speak an encoding without mathematical signs.
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()


def plain(run: Run) -> str:
    """Write a run as plain text."""
    parts = []
    if run.entries:
        rows = [HEADINGS, *(row(group) for group in run.rules())]
        kept = [i for i in range(len(HEADINGS)) if any(r[i] for r in rows[1:])]
        widths = [max(len(r[i]) for r in rows) for i in kept]
        table = ["  ".join(r[i].ljust(w) for i, w in zip(kept, widths)).rstrip() for r in rows]
        table.insert(1, "  ".join("-" * w for w in widths))
        parts.append("\n".join(table))
    parts += [text for _, text in blocks(run)]
    if run.entries:
        parts.append(summary(run))
    return "\n\n".join(parts)


def _rich(run: Run, stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    if run.entries:
        shown = range(len(HEADINGS)) if console.width >= WIDE else (0, 1, 3, 6)
        table = Table(box=box.SIMPLE_HEAD)
        for i in shown:
            table.add_column(HEADINGS[i], overflow="fold")
        for group in run.rules():
            cells = row(group)
            style = COLOURS[worst(group).report.verdict]
            table.add_row(*(Text(cells[i], style=style if i == 1 else "") for i in shown))
        console.print(table)
    for entry, text in blocks(run):
        console.print(Rule(style=COLOURS[entry.report.verdict]))
        # No border and no line break of ours: what is there to paste must paste.
        console.print(Text(text), soft_wrap=True)
    if run.entries:
        console.print(Rule(style="dim"))
        console.print(Text(summary(run)), soft_wrap=True)
