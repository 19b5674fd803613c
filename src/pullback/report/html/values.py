"""Picture data as it was read, which may be anything: what is not as the schema says is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = ("nan", "inf", "-inf")


class Values:
    """Give the parts of a picture by type; ValueError is for the picture that has no such part."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def order(self) -> int:
        """Give the order of the derivative."""
        return 2 if self.data.get("order") == 2 else 1

    def text(self, name: str) -> str:
        """Give a text."""
        value = self.data.get(name)
        if not isinstance(value, str):
            raise ValueError(name)
        return value

    def number(self, name: str) -> float:
        """Give a number; a word stands for one that is not finite."""
        return _number(self.data.get(name), name)

    def flag(self, name: str) -> bool:
        """Tell whether something is so."""
        return self.data.get(name) is True

    def numbers(self, name: str) -> list[float]:
        """Give a list of numbers."""
        return [_number(value, name) for value in self._list(name)]

    def texts(self, name: str) -> list[str]:
        """Give a list of texts."""
        found = self._list(name)
        if not all(isinstance(value, str) for value in found):
            raise ValueError(name)
        return found

    def places(self, name: str) -> list[int]:
        """Give a list of whole numbers."""
        return [int(value) for value in self.numbers(name)]

    def _list(self, name: str) -> list[Any]:
        value = self.data.get(name)
        if not isinstance(value, list):
            raise ValueError(name)
        return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or value in WORDS):
        raise ValueError(name)
    return float(value)
