"""Names that tell rules apart: qualified, and where two share one, with what makes them different.

First whose a rule is: its module, or its file and line. Rules of one line, which a factory made, are told
apart by what they hold: `scaled[a=2.0]`. A number is the last resort.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from pullback import hosts
from pullback.record.recorder import Recorder
from pullback.record.sample import Recorded
from pullback.report.printable import shortened

ABOVE_HOSTS = {"keras": "Keras", "tf_keras": "Keras", "equinox": "Equinox"}
LONGEST = 24  # letters of a value
MOST = 2  # values


def name_apart(rules: Sequence[Recorded]) -> None:
    """Give each rule the name that it is shown by."""
    for rule in rules:
        rule.shown = rule.name
    _where_shared(rules, _by_module)
    _where_shared(rules, _by_line)
    _where_shared(rules, _by_facts)
    _where_shared(rules, _by_number)


def _where_shared(rules: Sequence[Recorded], rename: Callable[[list[Recorded]], list[str]]) -> None:
    groups: dict[str, list[Recorded]] = {}
    for rule in rules:
        groups.setdefault(rule.shown, []).append(rule)
    for group in groups.values():
        if len(group) > 1:
            for rule, name in zip(group, rename(group)):
                rule.shown = name


def _by_module(group: list[Recorded]) -> list[str]:
    modules = {rule.module for rule in group}
    if len(modules) == 1:
        return [rule.shown for rule in group]
    return [f"{_module(rule)}.{rule.shown}" if rule.module else rule.shown for rule in group]


def _module(rule: Recorded) -> str:
    is_script = rule.module.startswith("__") and rule.path
    return os.path.splitext(os.path.basename(rule.path))[0] if is_script else rule.module


def _by_line(group: list[Recorded]) -> list[str]:
    if len({(rule.path, rule.line) for rule in group}) == 1:
        return [rule.shown for rule in group]
    return [f"{rule.shown} ({os.path.basename(rule.path)}:{rule.line})" for rule in group]


def _by_facts(group: list[Recorded]) -> list[str]:
    names = dict.fromkeys(name for rule in group for name in rule.facts)
    differ = [name for name in names if len({rule.facts.get(name) for rule in group}) > 1]
    told = [""] * len(group)
    for most in range(1, MOST + 1):
        if len(set(told)) < len(group):
            told = [_told(rule, differ[:most]) for rule in group]
    return [f"{rule.shown}[{text}]" if text else rule.shown for rule, text in zip(group, told)]


def _by_number(group: list[Recorded]) -> list[str]:
    keys = sorted(rule.key for rule in group)  # several processes may check them, in any order
    return [f"{rule.shown} #{keys.index(rule.key) + 1}" for rule in group]


def _told(rule: Recorded, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={shortened(rule.facts[name], LONGEST)}" for name in names if name in rule.facts)


def own_words(recorder: Recorder) -> str:
    """Count the rules of frameworks that the program used, in words."""
    counts: dict[str, int] = {}
    for package, rules in recorder.own.items():
        name = _framework(package)
        counts[name] = counts.get(name, 0) + len(rules)
    said = ", ".join(f"{count} of {name}'s own" for name, count in sorted(counts.items()))
    return f"{said}; `--all` checks them" if said else ""


def _framework(package: str) -> str:
    """Name the framework of a package, as it calls itself."""
    if package in hosts.ROOTS:
        return hosts.host(hosts.ROOTS[package]).name
    return ABOVE_HOSTS.get(package, package)
