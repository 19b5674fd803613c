"""What a host cannot do, with its reason: read from `known_differences.toml`, and held to strictly.

A listed difference must show itself. When it no longer does, the test fails until the entry is removed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

FILE = Path(__file__).parent / "known_differences.toml"
DIFFERENCES: list[dict[str, str]] = tomllib.loads(FILE.read_text(encoding="utf-8")).get("difference", [])
_KEYS = {"host", "rule", "question", "shows", "reason"}


def known(host: str, rule: str, question: str) -> dict[str, str] | None:
    """Find the entry for a rule, a host and a question."""
    for entry in DIFFERENCES:
        asked = {"host": host, "rule": rule, "question": question}
        if all(any(fnmatch.fnmatch(asked[key], p) for p in entry[key].split("|")) for key in asked):
            return entry
    return None


def hold(host: str, rule: str, question: str, test: Callable[[], Any]) -> str:
    """Run a test; where a difference is listed, require that it fails in the way that is listed."""
    entry = known(host, rule, question)
    if entry is None:
        test()
        return ""
    try:
        test()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert entry["shows"] in text, (
            f"known_differences.toml says that it shows as {entry['shows']!r}; it shows as: {text}"
        )
        return entry["reason"]
    raise AssertionError(
        f"{rule} × {host} × {question} passes: remove it from known_differences.toml ({entry['reason']})"
    )


def complete(entry: dict[str, str]) -> bool:
    """Tell whether an entry says everything."""
    return set(entry) == _KEYS and all(entry.values())
