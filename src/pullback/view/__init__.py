"""What the checker sees of a host: any callable of a framework as a function of NumPy arrays.

Executing is the hosts' work; this room stands between them and the checker, and neither knows the other. A
host that has no adapter here runs rules all the same, and cannot be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pullback import hosts
from pullback.hosts.base import Host
from pullback.view.arguments import EVERYTHING, Asked
from pullback.view.subject import Subject


def subject_of(
    host: Host,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    asked: Asked = EVERYTHING,
) -> Subject:
    """Make a function and its example arguments a subject of the checker; `asked` narrows what is asked."""
    framework = hosts.framework_of(host)
    if not framework or find_spec(f"pullback.view.{framework}") is None:
        raise host.refused("check")
    adapter = import_module(f"pullback.view.{framework}.adapter").ADAPTER
    subject: Subject = adapter(function, tuple(args), dict(kwargs), None, None, asked).subject()
    return subject
