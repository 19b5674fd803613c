"""Running a function with every rule inside it bypassed, so that TensorFlow differentiates the bodies.

This is the checker's first oracle. It reaches `tf.custom_gradient` and pullback's own rules, however deep in
a wrapper they are, and runs each as its plain body, recorded operation by operation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pullback.hosts.base import Met, meeting
from pullback.hosts.tensorflow import HOST, recording
from pullback.rule import EXACT


@contextlib.contextmanager
def bypassed() -> Iterator[list[Met]]:
    """Run rules as their plain bodies; the list collects the rules met."""
    with meeting(HOST) as met, _native_bypassed(met):
        yield met


@contextlib.contextmanager
def _native_bypassed(met: list[Met]) -> Iterator[None]:
    rules = recording.native_rules
    if rules is None:  # another TensorFlow than we know: its own rules stay what they are
        yield
        return
    kept = (rules._eager_mode_decorator, rules._graph_mode_decorator)

    def body_only(function: Any, args: Any, kwargs: Any) -> Any:
        met.append(Met(getattr(function, "__name__", "rule"), EXACT))
        return function(*args, **kwargs)[0]

    rules._eager_mode_decorator = rules._graph_mode_decorator = body_only
    try:
        yield
    finally:
        rules._eager_mode_decorator, rules._graph_mode_decorator = kept
