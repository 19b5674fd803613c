"""The configuration: `[tool.pullback]` of a `pyproject.toml`, or a `pullback.toml`, found upward from here.

It holds defaults of the command, and declarations of rules that cannot be decorated. A mistake in it is an
error that names the file, the table and the key: a declaration that is not heard would be worse than none.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pullback.declare import NOTHING, Declaration, read
from pullback.errors import ConfigurationError

FILES = ("pullback.toml", "pyproject.toml")
WILD = "*?["
Facts: TypeAlias = "Iterable[tuple[str, str]]"  # what a rule holds, by name and in words


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


# The keys beside `rules`: whether a value is one, and what it must be.
OPTIONS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "seed": (_integer(0), "a whole number from 0", "seed = 0"),
    "order": (lambda v: _integer(1)(v) and v <= 2, "1 or 2", "order = 2"),
    "budget": (_is_seconds, "a number of seconds", "budget = 60"),
    "strict": (lambda v: isinstance(v, bool), "true or false", "strict = true"),
    "baseline": (lambda v: isinstance(v, str) and bool(v), "a file", 'baseline = "pullback-baseline.json"'),
    "jobs": (_integer(1), "a whole number from 1", "jobs = 2"),
    "mend": (lambda v: isinstance(v, bool), "true or false", "mend = true"),
    "mend_budget": (_is_seconds, "a number of seconds", "mend_budget = 10"),
}


@dataclass(frozen=True)
class Configuration:
    """Hold one file: the defaults of the command, and what is said of rules, by name or pattern."""

    path: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Declaration] = field(default_factory=dict)

    def matching(self, name: str, facts: Facts = ()) -> list[str]:
        """List the tables that speak of a rule: patterns in the order of the file, then its own name.

        A rule of a factory is named with what it holds, as a report does: `package.scaled[a=2.0]`. Such
        tables come last.
        """
        patterns = [p for p in self.rules if p != name and is_pattern(p) and fnmatch.fnmatchcase(name, p)]
        held = [p for p in self.rules if p != name and _holds(p, name, facts)]
        return [*(p for p in patterns if p not in held), *([name] if name in self.rules else []), *held]

    def declaration(self, name: str, facts: Facts = ()) -> Declaration:
        """Give what is said of a rule; the later table counts, key by key."""
        keys = self.matching(name, facts)
        return functools.reduce(lambda found, key: self.rules[key].over(found), keys, NOTHING)

    @property
    def seed(self) -> int | None:
        """Give the seed that is fixed here, if one is."""
        return self.options.get("seed")


def is_pattern(name: str) -> bool:
    """Tell a pattern from a name."""
    return any(sign in name for sign in WILD)


def _holds(key: str, name: str, facts: Facts) -> bool:
    """Tell whether a key names a rule by what it holds; a value that was cut ends in an ellipsis."""
    told = re.fullmatch(r"([^\[]*)\[([^\]=]*=.*)\]", key)
    if told is None or not fnmatch.fnmatchcase(name, told[1]):
        return False
    given = dict(facts)

    def fits(fact: str, value: str) -> bool:
        known = given.get(fact)
        return known is not None and (known.startswith(value[:-1]) if value.endswith("…") else known == value)

    return all(fits(*pair.partition("=")[::2]) for pair in told[2].split(", "))


def heard(
    known: Configuration, names: Iterable[tuple[str, Facts]], script: str = ""
) -> tuple[list[str], list[str]]:
    """List the tables that speak of one of these rules, and those that speak of none and could have.

    One could have if the module that it names was imported here, or is the script that ran; a pattern, if
    that is so of what stands before its first wildcard.
    """
    used = {key for name, facts in names for key in known.matching(name, facts)}

    def could(key: str) -> bool:
        fixed = key[: min([key.index(sign) for sign in WILD if sign in key] or [len(key)])]
        parts = fixed.split(".")[:-1]
        if not parts:
            return False  # it names no module: another run may have its rule
        if script and f"{fixed}.".startswith(f"{script}."):
            return True
        for cut in range(len(parts), 0, -1):
            module = sys.modules.get(".".join(parts[:cut]))
            if module is not None:
                return cut == len(parts) or hasattr(module, parts[cut])
        return False

    return sorted(used), sorted(key for key in known.rules if key not in used and could(key))


# ── finding ──────────────────────────────────────────────────────────────────────────────────────────────

_used: list[Configuration] = []  # the one that the command was given, if it was


def use(path: str | None) -> Configuration:
    """Settle on a file for this process, or on the one that is found from here."""
    _used[:] = [(load(path) or Configuration(os.path.abspath(path))) if path else found(os.getcwd())]
    return _used[0]


def current() -> Configuration:
    """Give the configuration that counts here."""
    return _used[0] if _used else found(os.getcwd())


def found(folder: str) -> Configuration:
    """Find the file nearest to a folder; a `pyproject.toml` that does not speak of us is passed by."""
    for place in (folder, *map(str, Path(folder).parents)):
        for name in FILES:
            path = os.path.join(place, name)
            known = load(path) if os.path.isfile(path) else None
            if known is not None:
                return known
    return Configuration()


def load(path: str) -> Configuration | None:
    """Read a file; None for one that does not speak of us."""
    try:
        stamp = os.stat(path)
        return _loaded(os.path.abspath(path), stamp.st_mtime_ns, stamp.st_size)
    except OSError as error:
        raise ConfigurationError.about(
            path, found=f"it cannot be read: {error.strerror}", expected="a TOML file", fix="--config FILE"
        ) from None


@functools.lru_cache(maxsize=64)
def _loaded(path: str, stamp: int, size: int) -> Configuration | None:
    return parsed(Path(path).read_bytes(), path)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────


def parsed(data: bytes, path: str) -> Configuration | None:
    """Read the text of a file; None where it does not speak of us."""
    name = os.path.basename(path)
    is_project = name == "pyproject.toml"
    if is_project and b"pullback" not in data:
        return None
    table = _toml(data, name)
    prefix = ""
    if is_project:
        tool = table.get("tool")
        if not isinstance(tool, dict) or "pullback" not in tool:
            return None
        table, prefix = tool["pullback"], "tool.pullback"
    top = f"{name} [{prefix}]" if prefix else name
    if not isinstance(table, dict):
        raise _wrong(top, f"tool.pullback = {table!r}", "a table", "[tool.pullback]")
    options = {key: value for key, value in table.items() if key != "rules"}
    for key, value in options.items():
        if key not in OPTIONS:
            raise _wrong(top, f"{key} = {value!r}", f"one of {', '.join(OPTIONS)}, rules", "seed = 0")
        fits, expected, fix = OPTIONS[key]
        if not fits(value):
            raise _wrong(top, f"{key} = {value!r}", expected, fix)
    if "baseline" in options:  # as seen from the file
        options["baseline"] = os.path.join(os.path.dirname(path), options["baseline"])
    return Configuration(path, options, _rules(table.get("rules", {}), name, prefix))


def _rules(tables: Any, name: str, prefix: str) -> dict[str, Declaration]:
    header = f"{prefix}.rules" if prefix else "rules"
    if not isinstance(tables, dict):
        raise _wrong(f"{name} [{header}]", f"rules = {tables!r}", "tables", f'[{header}."package.Name"]')
    found = {}
    for key, table in tables.items():
        where = f'{name} [{header}."{key}"]'
        if not isinstance(table, dict) or any(isinstance(v, dict) for k, v in table.items() if k != "domain"):
            # A dotted name without quotes is a table in a table.
            fix = f'[{header}."package.module.Name"]\ndiffers = "straight-through"'
            raise _wrong(where, f"{key} = {table!r}"[:120], "a table, its name in quotes", fix)
        if not table:
            raise _wrong(where, "nothing is said", "what the rule claims", 'differs = "straight-through"')
        found[key] = read(table, where=where, origin=where, error=ConfigurationError)
    return found


def _toml(data: bytes, name: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
        return found
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(name, f"it is no TOML: {error}", "a TOML file", "seed = 0") from None


def _wrong(where: str, found: str, expected: str, fix: str) -> ConfigurationError:
    return ConfigurationError.about(where, found=found, expected=expected, fix=fix)
