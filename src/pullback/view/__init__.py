"""What the checker sees of a host: any callable of a framework as a function of NumPy arrays.

Executing is the hosts' work; this room stands between them and the checker, and neither knows the other. A
host that has no adapter here runs rules all the same, and cannot be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from pullback import hosts
from pullback.declare import Declaration
from pullback.hosts.base import Host
from pullback.view.arguments import EVERYTHING, Asked
from pullback.view.declared import known_as, said_of_adapted
from pullback.view.subject import Subject


def subject_of(
    host: Host,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    said: Declaration | None = None,
    asked: Asked = EVERYTHING,
) -> Subject:
    """Make a function and its example arguments a subject of the checker.

    `said` is what is said of it from outside, where the function itself does not lead to that. `asked`
    narrows what is asked.
    """
    framework = hosts.framework_of(host)
    if hosts.part("view", framework) is None:
        raise host.refused("check")
    adapter = import_module(f"pullback.view.{framework}.adapter").ADAPTER
    native = adapter.natives.named(function)
    if native is not None and isinstance(function, type):  # a Function itself: it is run by its `apply`
        function = native.kept()[0]
    adapted = adapter(function, tuple(args), dict(kwargs), asked=asked)
    adapted.said = said_of_adapted(adapted) if said is None else said
    subject: Subject = replace(adapted.subject(), known_as=known_as(adapted))
    return subject
