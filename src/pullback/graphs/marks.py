"""How a custom gradient is marked in a graph: what it claims, said by its rule or from outside."""

from __future__ import annotations

from typing import Any, Literal

from pullback.graphs.parts import Mark
from pullback.hosts.base import Met
from pullback.rule import EXACT, Intent, Rule
from pullback.view.declared import claimed
from pullback.view.native import Native

_WORDS: dict[str, Literal["exact", "surrogate", "differs"]] = {
    "exact": "exact",
    "like": "surrogate",
    "differs": "differs",
}


def of_rule(rule: Rule) -> Mark:
    """Mark a rule of this library."""
    return _mark("pullback", claimed(Met(rule.name, rule.intent, rule)))


def of_native(known: Native) -> Mark:
    """Mark a rule of a framework's own; what nobody says anything of claims to be the derivative."""
    intent = EXACT if known.intent is None else known.intent
    return _mark(known.kind, claimed(Met(known.name, intent, known)))


def of_maker(maker: str) -> Mark:
    """Mark a rule of which the maker alone is known."""
    return _mark(maker, EXACT)


def of_operation(operation: Any) -> Mark:
    """Mark what a host was handed: the application of a rule, or something derived from one."""
    rule = getattr(getattr(operation, "plan", None), "rule", None)
    if isinstance(rule, Rule):
        return of_rule(rule)
    intent = getattr(operation, "intent", EXACT)
    return _mark("pullback", intent if isinstance(intent, Intent) else EXACT)


def _mark(maker: str, intent: Intent) -> Mark:
    return Mark(maker, _WORDS[intent.kind], str(intent))
