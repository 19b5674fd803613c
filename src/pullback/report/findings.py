"""The JSON findings read back, from a file that may be old, newer, cut off, or damaged.

Whatever can be shown is shown, and each thing that is wrong with the file is one sentence. Only a file with
nothing to show in it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pullback.report.data import SCHEMA, from_data
from pullback.report.entry import Run
from pullback.report.printable import printable

SPACE = re.compile(r"[\s,:]*")
WORDS = ("nan", "inf", "-inf")
NUMBER = (float, int, str, type(None))
# What stands where a field is missing. A verdict that is missing is none.
FINDING: dict[str, Any] = {
    "probe": "", "verdict": "note", "sentence": "", "cause": None, "edit": "", "where": "", "measured": None,
    "claimed": None, "resolution": None, "reason": "", "oracle": "", "point": "given", "reproducer": "",
    "capability": "", "answer": None, "mended": False, "resized": False, "last": False, "smallest": "",
    "patch": "",
}  # fmt: skip
ENTRY: dict[str, Any] = {
    "target": "", "path": "", "line": 0, "signature": "", "calls": 0, "qualified": "", "excused": "",
    "name": "?", "source": "", "verdict": "undecided", "intent": "", "causes": [], "resolution": None,
    "oracle": "", "capabilities": {}, "seed": 0, "forwards": 0, "pullbacks": 0, "findings": [], "code": "",
    "docstring": "", "pictures": [],
}  # fmt: skip
LATER = ("smallest", "patch", "code", "docstring", "pictures")  # that an earlier pullback did not write
VERDICTS = {"entry": ("right", "wrong", "undecided"), "finding": ("right", "wrong", "undecided", "note")}


class FindingsError(Exception):
    """A file in which there is nothing to show; the text is one sentence for the user."""


def load(path: str) -> tuple[dict[str, Any], list[str]]:
    """Read a file of findings: the document, and a sentence per thing that is wrong with the file."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise FindingsError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return _findings(path, json.loads(text)), []
    except RecursionError:
        raise FindingsError(f"{path} is nested too deeply to be findings of pullback") from None
    except ValueError:
        document = _findings(path, salvaged(text))
    found = document.get("rules")
    count = len(found) if isinstance(found, list) else 0
    said = f"{path} is cut off or damaged: the {count} rule(s) before that place are shown"
    return document, [said]


def _findings(path: str, document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise FindingsError(f"{path} holds no findings: `pullback check TARGET --json {path}` writes them")
    return document


def salvaged(text: str) -> dict[str, Any]:
    """Read what stands before the place where JSON ends too early."""
    decoder, found, at = json.JSONDecoder(), {}, _past(text.find("{") + 1, text)
    try:
        while at < len(text) and text[at] == '"':
            name, at = decoder.raw_decode(text, at)
            at = _past(at, text)
            if name != "rules" or text[at : at + 1] != "[":
                found[name], at = decoder.raw_decode(text, at)
                at = _past(at, text)
                continue
            rules: list[Any] = []
            found[name], at = rules, _past(at + 1, text)
            while text[at : at + 1] == "{":
                rule, at = decoder.raw_decode(text, at)
                rules.append(rule)
                at = _past(at, text)
            at = _past(at + 1, text)
    except (ValueError, RecursionError):
        pass
    return found


def _past(at: int, text: str) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def run_of(document: Mapping[str, Any]) -> tuple[Run, list[str]]:
    """Make a run of a document, and say what of it cannot be shown, a sentence each."""
    said = []
    schema = document.get("schema")
    if schema != SCHEMA:
        which = "without a version" if schema is None else f"of version {schema!r}"
        said.append(f"the findings are {which}, and this pullback reads {SCHEMA}: what it knows of is shown")
    rules = document.get("rules")
    rules = rules if isinstance(rules, list) else []
    seed = document.get("seed")
    run = Run(seed=seed if type(seed) is int else 0, targets=tuple(_texts(document.get("targets"))))
    run.problems, run.notes = _texts(document.get("problems")), _texts(document.get("notes"))
    missing: dict[str, int] = {}
    damaged = 0
    for rule in rules:
        data, lacking = fitted(rule, ENTRY, "entry")
        if data is None:
            damaged += 1
            continue
        parts = [fitted(finding, FINDING, "finding") for finding in data["findings"]]
        data["findings"] = [part for part, _ in parts if part is not None]
        lacking += [name for _, names in parts for name in names]
        if data["excused"] == "skipped" and not data["findings"]:
            data["excused"] = ""  # the reason is lost
        for name in dict.fromkeys(lacking):
            missing[name] = missing.get(name, 0) + 1
        run.entries.append(from_data(data))
    if missing:
        names = ", ".join(sorted(missing)[:6]) + (" and more" if len(missing) > 6 else "")
        said.append(f"{max(missing.values())} of {len(rules)} rules lack {names}: the rest of them is shown")
    if damaged:
        said.append(f"{damaged} of {len(rules)} rules are no findings, and are left out")
    return run, said


def fitted(data: Any, fields: Mapping[str, Any], what: str) -> tuple[dict[str, Any] | None, list[str]]:
    """Give the known fields of data, with defaults for what is missing or of another type."""
    if not isinstance(data, dict):
        return None, []
    kept, lacking = {}, []
    for name, default in fields.items():
        value = data.get(name)
        fits = name in data and _fits(name, value, default, what)
        kept[name] = value if fits else default
        if not fits and (name in data or name not in LATER):
            lacking.append(name)
    return kept, lacking


def _fits(name: str, value: Any, default: Any, what: str) -> bool:
    if name == "verdict":
        return value in VERDICTS[what]
    if name == "excused":
        return value in ("", "known", "skipped")
    if name in ("measured", "claimed", "resolution"):
        return isinstance(value, NUMBER) and (not isinstance(value, str) or value in WORDS)
    if name in ("cause", "answer"):
        return value is None or isinstance(value, str)
    if name == "capabilities":
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if name == "causes":
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return type(value) is type(default)


def _texts(value: Any) -> list[str]:
    return [printable(str(text)) for text in value] if isinstance(value, list) else []
