"""The graph: a frozen value that draws itself in every form."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pullback.errors import OptionError
from pullback.graphs import dot, fold, mermaid, png, svg, text
from pullback.graphs.parts import Culprit, Edge, Node


@dataclass(frozen=True, repr=False)
class Graph:
    """Hold the operations of a function, what flows between them, and the gradients that come back.

    `problem` says why the function could not be traced, where that is so; `notes` what else a reader must
    know.
    """

    title: str
    host: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    culprit: Culprit | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()

    def fold(self, limit: int = fold.SCREEN) -> Graph:
        """Fold by modules, layers and scopes until at most so many nodes are left."""
        return fold.folded(self, limit)

    def dot(self) -> str:
        """Write it as Graphviz DOT, whole."""
        return dot.dot(self)

    def mermaid(self) -> str:
        """Write it as Mermaid, whole."""
        return mermaid.mermaid(self)

    def svg(self, *, fold: bool = True) -> str:
        """Draw it as SVG, folded to fit a screen, or whole."""
        return svg.svg(self.fold() if fold else self)

    def png(self, path: str | os.PathLike[str], *, fold: bool = True) -> None:
        """Draw it as a PNG file."""
        Path(path).write_bytes(png.png(self.svg(fold=fold)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, in the form that its suffix names."""
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        ways = {
            ".svg": self.svg,
            ".dot": self.dot,
            ".gv": self.dot,
            ".mmd": self.mermaid,
            ".txt": self.__str__,
        }
        if suffix == ".png":
            self.png(path)
            return
        if suffix not in ways:
            raise OptionError.about(
                "graph",
                found=f"a file that ends in {suffix or 'nothing'}",
                expected="one that ends in .svg, .png, .dot, .mmd or .txt",
                fix='graph.save("graph.svg")',
            )
        Path(path).write_text(ways[suffix](), encoding="utf-8")

    def __str__(self) -> str:
        return text.written(self)

    __repr__ = __str__

    def _repr_svg_(self) -> str | None:
        """Show itself in a notebook; where nothing draws, the text is shown."""
        return self.svg() if svg.available() else None
