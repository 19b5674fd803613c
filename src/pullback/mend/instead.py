"""The last resort, where no edit was found: no rule at all. It is said only if that was run and is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pullback import hosts, tree
from pullback.checker.inquiry import check_subject
from pullback.checker.settings import Settings
from pullback.checker.within import placed
from pullback.view import subject_of
from pullback.view.subject import Subject

ASKED = ("derivative", "linearity")


def instead(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    settings: Settings,
    domain: Any = None,
) -> str | None:
    """Say that the framework's own gradient of the body is right, and what it costs; None where it is not."""
    host = hosts.among(tree.flatten([args, kwargs])[0], function, "")
    rule = placed(subject_of(host, function, args, kwargs), domain)
    plain = without(rule)
    if plain is None or rule.intent.kind != "exact":
        return None
    asked = replace(settings, order=1, probes=ASKED, pictures=False)
    if check_subject(plain, asked).verdict != "right":
        return None
    costs = check_subject(rule, replace(asked, probes=("cost",))).findings
    ratios = [1 / f.measured for f in costs if f.measured]
    said = "delete the rule: the framework's own gradient is right here"
    if not ratios:
        return said
    return f"{said}, and costs about {ratios[0]:.1f} times what the rule's does"


def without(rule: Subject | None) -> Subject | None:
    """Give the body of a rule as a function without one; None where the framework cannot differentiate it."""
    if rule is None or not rule.is_rule or rule.body_forward is None or rule.body_pullback is None:
        return None
    finer = rule.astype
    return replace(
        rule,
        forward=rule.body_forward,
        pullback=rule.body_pullback,
        astype=None if finer is None else lambda dtype: without(finer(dtype)),
        body_forward=None,
        body_pullback=None,
        direct_pullback=None,
        sharing_pullback=None,
        is_rule=False,
    )
