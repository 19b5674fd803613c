"""Wrapping functions that no framework can see into: NumPy, SciPy, C, another program, another machine."""

import sys
from types import ModuleType
from typing import Any

from pullback.external.wrap import external

__all__ = ["external"]


class _Callable(ModuleType):
    """`pb.external(…)` and `import pullback.external` meet in one name: the package can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return external(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
