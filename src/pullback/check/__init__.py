"""Check: prove a gradient right, or say what is wrong with it. Framework-free; returns data, prints nothing.

The package is callable, because `pb.check(f, x)` and `pullback.check` are one name.
"""

import sys
from types import ModuleType
from typing import Any

from pullback.check.check import check, check_subject
from pullback.check.finding import Finding, Report
from pullback.check.settings import Settings
from pullback.check.subject import Subject

__all__ = ["Finding", "Report", "Settings", "Subject", "check", "check_subject"]


class _Check(ModuleType):
    def __call__(self, f: Any, *args: Any, **kwargs: Any) -> Report:
        """Check the gradient of any differentiable callable at example arguments."""
        return check(f, *args, **kwargs)


sys.modules[__name__].__class__ = _Check
