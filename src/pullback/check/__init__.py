"""Check: prove a gradient right, or say what is wrong with it. Framework-free; prints nothing."""

import sys
from types import ModuleType
from typing import Any

from pullback.check.check import check, check_subject
from pullback.check.finding import Finding, Report
from pullback.check.settings import Settings
from pullback.view.subject import Subject

__all__ = ["Finding", "Report", "Settings", "Subject", "check", "check_subject"]


class _Callable(ModuleType):
    """`pb.check(f, x)` and `import pullback.check` meet in one name: the package can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Report:
        return check(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
