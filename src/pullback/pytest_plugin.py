"""The pytest plugin: the fixture `check_gradient`. Every pytest run loads it, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def check_gradient(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Check a gradient, `check_gradient(f, *args, **kwargs)`: a wrong one fails the test with the report."""

    def check_gradient(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        from pullback.errors import WrongGradientError
        from pullback.testing import assert_gradient

        try:
            return assert_gradient(f, *args, **kwargs)
        except WrongGradientError as error:
            said = str(error)
        # A section, and not the message: that one pytest repeats in its summary, whole where it runs in CI.
        request.node.add_report_section("call", "gradient", said)
        # Not inside the `except`: pytest would show the error that this one came of.
        pytest.fail(said.partition("\n")[0], pytrace=False)

    return check_gradient
