"""The pytest plugin: the fixture `check_gradient`. Every pytest run loads it, so it imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def check_gradient() -> Callable[..., Any]:
    """Check a gradient, `check_gradient(f, *args, **kwargs)`: a wrong one fails the test with the report."""

    def check_gradient(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        from pullback.errors import WrongGradientError
        from pullback.testing import assert_gradient

        try:
            return assert_gradient(f, *args, **kwargs)
        except WrongGradientError as error:
            said = str(error)
        # Not inside the `except`: pytest would show the error that this one came of, and the report twice.
        pytest.fail(said, pytrace=False)

    return check_gradient
