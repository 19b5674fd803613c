"""A log as a table: text for the terminal, HTML for notebooks; and the worst of it."""

from __future__ import annotations

import html as escaping
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pullback.watching.record import LOWEST, History

if TYPE_CHECKING:
    from pullback.watching.log import Log

HEAD = (
    "place",
    "steps",
    "rms",
    "min",
    "max",
    "NaN",
    "inf",
    "zero",
    "None",
    f"sizes from 1e{LOWEST}, by decades",
)
_BARS = " ▁▂▃▄▅▆▇█"
_SHOWN = 12  # rows of the worst


def row(history: History) -> tuple[str, ...]:
    """Give the cells of one place."""
    total = history.count("size")
    zero = f"{history.count('zero') / total:.0%}" if total else "–"
    least = min((r.min for r in history if math.isfinite(r.min)), default=math.nan)
    largest = max((r.max for r in history if math.isfinite(r.max)), default=math.nan)
    numbers = [f"{n:.2g}" if math.isfinite(n) else "–" for n in (history.rms, least, largest)]
    counts = [f"{n:,}" if n else "" for n in (history.count("nan"), history.count("inf"))]
    none = f"{history.none:,}" if history.none else ""
    return (history.name, str(len(history)), *numbers, *counts, zero, none, _bars(history.decades))


def _bars(decades: Sequence[int]) -> str:
    most = max(decades)
    return "".join(_BARS[math.ceil(8 * n / most)] if most else " " for n in decades)


def text(log: Log, histories: Sequence[History]) -> str:
    """Give the table of some places, and the remarks."""
    rows = [HEAD, *map(row, histories)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    lines = [
        "  ".join(
            c.ljust(w) if i in (0, len(HEAD) - 1) else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))
        )
        for r in rows
    ]
    return "\n".join(line.rstrip() for line in [*lines, *log.remarks])


def worst(log: Log) -> str:
    """Say what is wrong, and show the places where it is."""
    histories = {history.name: history for history in log}
    if not histories:
        return "\n".join(["nothing was heard", *log.remarks])
    said, names = [], []
    for what, first in (("NaN", log.first_nan), ("inf", log.first_inf)):
        if first is not None:
            said.append(f"{what} was seen first at {first}")
            names.append(first.name)
    for name, history in histories.items():
        if history.none:
            said.append(f"{name}: no gradient arrived, {history.none} times")
            names.append(name)
    for trend in (*log.vanishing(), *log.exploding()):
        said.append(str(trend))
        names.append(trend.name)
    bad = [n for n, h in histories.items() if h.count("nan") or h.count("inf")]
    quiet = sorted(histories, key=lambda n: -histories[n].count("zero") / max(histories[n].count("size"), 1))
    chosen = list(dict.fromkeys([*names, *bad, *quiet]))[:_SHOWN]
    shown = [history for history in histories.values() if history.name in chosen]
    left = len(histories) - len(shown)
    more = [f"and {left} more places: log.table()"] if left else []
    return "\n".join([*said[:_SHOWN], text(log, shown), *more])


def html(log: Log) -> str:
    """Give the table for a notebook."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escaping.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    rows = "".join(line("td", row(history)) for history in log)
    said = "".join(f"<p>{escaping.escape(remark)}</p>" for remark in log.remarks)
    return f"<table><thead>{line('th', HEAD)}</thead><tbody>{rows}</tbody></table>{said}"
