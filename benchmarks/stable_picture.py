"""The picture of `stable.py`: the error of a slope over 40 decades, of ours and of autodiff, as SVG.

One panel a rule, float32 on PyTorch. Colours are read on white and on black; nothing is drawn behind them.
"""

from __future__ import annotations

import numpy as np
from slopes import slopes

RULES = ("softplus", "log_cosh", "expm1_over_x", "log1mexp", "sinc", "softplus_inverse")
OURS, PLAIN, INK = "#1f9d8a", "#e0662f", "#808890"
WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 150, 46, 34, 40
TALLEST = 8.0  # decades of units of the last place; what is not finite stands above


def picture(rows, obvious):
    """Draw three panels beside each other, in two lines."""
    across, down = 3, 2
    width, height = LEFT + across * (WIDTH + GAP), TOP + down * (HEIGHT + GAP + 22)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12" '
        f'font-family="system-ui, sans-serif" fill="{INK}" role="img">',
        "<title>Errors of slopes over forty decades: ours, and autodiff of the obvious formula</title>",
        f'<circle cx="{LEFT + 4}" cy="12" r="4" fill="{OURS}"/><text x="{LEFT + 14}" y="16">pb.ops</text>',
        f'<circle cx="{LEFT + 84}" cy="12" r="4" fill="{PLAIN}"/>'
        f'<text x="{LEFT + 94}" y="16">autodiff of the obvious formula, float32; ∞ and NaN on top</text>',
    ]
    for i, name in enumerate(RULES):
        x, y = LEFT + (i % across) * (WIDTH + GAP), TOP + 22 + (i // across) * (HEIGHT + GAP + 22)
        parts.append(f'<g transform="translate({x} {y})">{_panel(rows[name], obvious)}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _panel(row, obvious):
    (points,) = row.points("float32")
    keep = points > 0
    log = np.log10(points[keep].astype(np.float64))
    low, high = np.floor(log.min()), np.ceil(log.max())
    drawn = [f'<text x="0" y="-8" font-weight="600">{row.name}</text>']
    for units, word in ((0, "1"), (2, "100"), (4, "10⁴"), (6, "10⁶"), (TALLEST, "∞")):
        y = HEIGHT * (1 - units / TALLEST)
        drawn.append(f'<path d="M0 {y:.1f}H{WIDTH}" stroke="{INK}" stroke-opacity=".3"/>')
        drawn.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{word}</text>')
    for decade in np.arange(low, high + 1, max(1, (high - low) // 4)):
        x = WIDTH * (decade - low) / (high - low)
        drawn.append(f'<text x="{x:.1f}" y="{HEIGHT + 16}" text-anchor="middle">10{_raised(decade)}</text>')
    for function, colour in ((obvious(row), PLAIN), (row.ours, OURS)):
        error = row.errors("float32", slopes("torch", function, [points]))[1][keep]
        with np.errstate(divide="ignore"):
            tall = np.clip(np.log10(np.maximum(error, 1.0)), 0, TALLEST)
        places = zip((log - low) / (high - low) * WIDTH, HEIGHT * (1 - tall / TALLEST))
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        style = f'stroke="{colour}" stroke-opacity=".8" stroke-width="4" stroke-linecap="round"'
        drawn.append(f'<path d="{dots}" {style}/>')
    return "".join(drawn)


def _raised(number):
    return str(int(number)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
