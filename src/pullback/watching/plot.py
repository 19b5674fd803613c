"""A log as a picture: the size of the gradient at each place, over the steps.

SVG by itself, so that no library is needed; readable on light and on dark ground. Places are coloured in the
order of the backward pass. A step with NaN or infinities is a red cross at the top.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from pullback.watching.record import History

if TYPE_CHECKING:
    from pullback.watching.log import Log

_Scale = Callable[[float], float]
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 320, 62, 210, 24, 36
_LEGEND = 16  # lines that have room
_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#666}.grid{stroke:#8883}.bad{stroke:#d22;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#aaa}}"
)


def svg(log: Log) -> str:
    """Draw a log."""
    histories = [history for history in log if len(history)]
    sizes = [r.rms for h in histories for r in h if r.rms > 0 and math.isfinite(r.rms)]
    low = math.floor(math.log10(min(sizes))) if sizes else -1
    high = max(math.ceil(math.log10(max(sizes))) if sizes else 0, low + 1)
    last = max([r.step for h in histories for r in h] or [1]) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="sizes of gradients over the steps"><style>{_STYLE}</style>',
        f'<text x="{_LEFT}" y="14">root mean square of the gradient</text>',
    ]

    def x(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last

    def y(size: float) -> float:
        part = (math.log10(size) - low) / (high - low) if size > 0 else 0.0
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(max(part, 0.0), 1.0)

    for power in range(low, high + 1, max(1, (high - low) // 6)):
        at = y(10.0**power)
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>')
    for step in sorted({round(last * i / 4) for i in range(5)}):
        parts.append(f'<text x="{x(step):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{step}</text>')
    parts.append(f'<text x="{x(last / 2):.1f}" y="{_HEIGHT - 4}" text-anchor="middle">step</text>')
    for i, history in enumerate(histories):
        colour = f"hsl({250 * i / max(len(histories) - 1, 1):.0f} 65% 50%)"
        parts += _line(history, colour, x, y)
        if i < _LEGEND:
            at = _TOP + 8 + 16 * i
            parts.append(
                f'<path d="M{_WIDTH - _RIGHT + 14} {at}h14" stroke="{colour}" stroke-width="2"/>'
                f'<text x="{_WIDTH - _RIGHT + 34}" y="{at + 4}">{html.escape(_short(history.name))}</text>'
            )
    if len(histories) > _LEGEND:
        at = _TOP + 12 + 16 * _LEGEND
        parts.append(f'<text x="{_WIDTH - _RIGHT + 34}" y="{at}">and {len(histories) - _LEGEND} more</text>')
    return "".join([*parts, "</svg>"])


def _line(history: History, colour: str, x: _Scale, y: _Scale) -> list[str]:
    title = f"<title>{html.escape(history.name)}</title>"
    points = [(x(r.step), y(r.rms)) for r in history if math.isfinite(r.rms)]
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    made = []
    if len(points) > 1:
        made.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6">{title}</path>')
    elif points:
        a, b = points[0]
        made.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}">{title}</circle>')
    for r in history:
        if r.nan or r.inf:
            made.append(f'<path class="bad" d="M{x(r.step) - 4:.1f} {_TOP - 4}l8 8m0-8l-8 8">{title}</path>')
    return made


def _short(name: str) -> str:
    return name if len(name) <= 26 else "…" + name[-25:]
