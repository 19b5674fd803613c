"""How the functions that an edit may need are spelled: a table per host, under the names the program uses.

A module is found by identity among the names in reach of the gradient; where it has none, what needs it is
not spelled, and no edit uses it.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from pullback import hosts
from pullback.mend.edit import filled
from pullback.mend.spell import namespace as neutral

# Functions of one tensor whose derivatives, or which themselves, appear in gradients.
UNARY = (
    "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "square", "reciprocal",
    "sigmoid", "log1p", "expm1", "rsqrt", "erf", "digamma", "softplus", "relu", "softmax", "asin", "atan",
    "floor", "positive",
)  # fmt: skip


@dataclass(frozen=True)
class Spelling:
    """Write functions for one program."""

    table: dict[str, str]  # by the name above: a template with {m} for the module and {e} for the operand
    module: str  # the name of the module in the program
    kind: str = ""

    def has(self, name: str) -> bool:
        """Tell whether a function can be written."""
        return name in self.table

    def write(self, name: str, **parts: Any) -> str:
        """Write a function of something."""
        return self.table[name].format(m=self.module, **parts)

    def around(self, node: ast.expr, name: str, **parts: Any) -> ast.expr:
        """Write a function of a node."""
        return filled(self.write(name, e="E", **parts), e=node)

    def is_tensor(self, value: Any) -> bool:
        """Tell whether a value is a tensor or a number that an expression may hold."""
        if isinstance(value, (bool, str, bytes)) or value is None:
            return False
        return isinstance(value, (int, float, complex, np.ndarray, np.generic)) or (
            hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)
        )


def spelling(space: dict[str, Any], local: list[str], framework: str, tensor: str) -> Spelling:
    """Find the spelling for the names in reach of a gradient; those of `local` are the forward's own."""
    own = hosts.part("mend.spell", framework) or neutral
    for name in local:
        if isinstance(space.get(name), ModuleType) and space[name].__name__ in neutral.MODULES:
            return Spelling(neutral.TABLE, name, "namespace")
    if isinstance(space.get(tensor), np.ndarray):  # it runs outside of every framework
        found = [n for n, value in space.items() if value is np and n.isidentifier()]
        return Spelling(neutral.NUMPY if found else neutral.BARE, "".join(found[:1]), "numpy")
    for module, path in own.MODULES.items():
        known = sys.modules.get(module)
        found = [n for n, value in space.items() if known is not None and value is known and n.isidentifier()]
        if found:
            return Spelling(own.TABLE, found[0] + path, framework)
    for name, value in space.items():
        if isinstance(value, ModuleType) and value.__name__ == "pullback" and tensor:
            return Spelling(neutral.TABLE, f"{name}.namespace({tensor})", "pullback")
    return Spelling(own.BARE, "", framework)
