"""A picture of the page: what was measured, as shapes in the plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Picture:
    """Hold one picture, ready to be written."""

    kind: str
    title: str


def drawn(pictures: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Draw what a report holds."""
    return []
