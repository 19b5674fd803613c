"""A log in the terminal, while it is written: the last record of each place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.live import Live as Display
from rich.table import Table
from rich.text import Text

from pullback.watching.record import History, Record
from pullback.watching.table import HEAD, row


class Live:
    """Show a table that changes in its place."""

    def __init__(self, console: Any = None) -> None:
        self._last: dict[str, Record] = {}
        self._display = Display(console=console, auto_refresh=False)
        self._shown = False

    def write(self, records: Sequence[Record]) -> None:
        """Show what is new."""
        if not records:
            return
        if not self._shown:
            self._display.start()
            self._shown = True
        self._last |= {record.name: record for record in records}
        self._display.update(self._table(), refresh=True)

    def _table(self) -> Table:
        table = Table(*(name if name != "steps" else "step" for name in HEAD if name != "None"), box=None)
        for record in self._last.values():
            cells = row(History(record.name, [record], 0))
            bad = "bold red" if record.nan or record.inf else ""
            cells = (cells[0], str(record.step), *cells[2:8], cells[9])
            table.add_row(*(Text(cell, style=bad) for cell in cells))
        return table

    def close(self) -> None:
        """Leave the last table standing."""
        if self._shown:
            self._display.stop()
