"""What a test suite uses: a check that fails with the report's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.checker.check import check
from pullback.checker.finding import Report
from pullback.errors import WrongGradientError
from pullback.report.block import block


def assert_gradient(f: Callable[..., Any], *args: Any, strict: bool = False, **kwargs: Any) -> Report:
    """Check a gradient at example arguments, and fail with the report when it is wrong.

    Args:
        f: Any differentiable callable.
        args: Its arguments.
        strict: Fail on an undecided gradient, too.
        kwargs: Its keywords, and those of `pb.check` (`seed`, `order`, `rtol` …).

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.testing.assert_gradient(tf.sin, tf.constant([0.5, 1.0])).verdict
        'right'

    Do not use it to compare two gradients: it proves one against its own forward.
    """
    __tracebackhide__ = True  # pytest shows the test, not us
    report = check(f, *args, **kwargs)
    if report.verdict == "wrong" or (strict and report.verdict == "undecided"):
        raise WrongGradientError(block(report))
    return report
