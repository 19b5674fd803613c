"""A graph as PNG: its SVG, drawn by resvg, in the font that matplotlib carries: a machine may have none."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

from pullback.errors import HostError
from pullback.graphs.svg import FONT


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
    if not _has_letters():
        raise HostError.about(
            "graph",
            found="no font was found, and the words would be left out of the picture",
            expected="the font that matplotlib carries, or one of this machine's",
            fix="pip install 'pullback[see]', or graph.svg(), which is drawn where it is looked at",
        )
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=2, font_files=_fonts()))


def _fonts() -> list[str]:
    """List the files of fonts that come with packages; none of them is imported for it."""
    found = importlib.util.find_spec("matplotlib")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    files = [Path(folder, "mpl-data", "fonts", "ttf", "DejaVuSansMono.ttf") for folder in folders]
    return [str(file) for file in files if file.exists()]


@functools.cache
def _has_letters() -> bool:
    import resvg_py

    def drawn(words: str) -> bytes:
        inside = f'<text y="20" font-family="{FONT}">{words}</text>'
        text = f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">{inside}</svg>'
        return bytes(resvg_py.svg_to_bytes(svg_string=text, font_files=_fonts()))

    return drawn("M") != drawn("")
