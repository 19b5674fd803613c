"""A graph as PNG: its SVG, drawn by resvg."""

from __future__ import annotations

import functools

from pullback.errors import HostError


def png(drawn: str) -> bytes:
    """Draw SVG as PNG, at twice the size."""
    try:
        import resvg_py
    except ImportError:
        raise HostError.about(
            "graph",
            found="resvg-py is not installed, which draws PNG",
            expected="resvg-py",
            fix="pip install 'pullback[see]', or graph.svg()",
        ) from None
    if not _has_fonts():
        raise HostError.about(
            "graph",
            found="this machine has no fonts, and the words would be left out of the picture",
            expected="one font",
            fix="graph.svg(), which is drawn where it is looked at",
        )
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=2))


@functools.cache
def _has_fonts() -> bool:
    import resvg_py

    def drawn(words: str) -> bytes:
        inside = f'<text y="20" font-family="monospace">{words}</text>'
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">{inside}</svg>'
            )
        )

    return drawn("M") != drawn("")
