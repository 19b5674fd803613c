"""Every rule that ships and every test rule, found; each at each of its examples.

A rule that ships is a public name of pullback, or of `pb.ops`, that carries a rule. A test rule is a name in
a file of `rules/` that carries one, or a dict of such by framework. What a rule is called with are its
`pb.example`s, written in NumPy: arrays become tensors of each framework, everything else stays as it is.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback import tree
from pullback.example import examples_of
from pullback.rule import Intent, Rule

FILES = sorted((Path(__file__).parent / "rules").glob("*.py"))


@dataclass(frozen=True)
class Case:
    """One rule at one example, seen flat."""

    name: str
    functions: dict[str, Callable[..., Any]]  # by framework; "" for all of them
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def function(self, framework: str) -> Callable[..., Any]:
        return self.functions.get(framework) or self.functions[""]

    @property
    def rule(self) -> Rule:
        return next(iter(self.functions.values())).rule  # type: ignore[attr-defined]

    @property
    def intent(self) -> Intent:
        return self.rule.intent

    @property
    def arrays(self) -> list[np.ndarray]:
        """The arrays among the arguments, in order."""
        return [leaf for leaf in self._leaves()[0] if isinstance(leaf, np.ndarray)]

    @property
    def moving(self) -> list[int]:
        """The places of those that can be differentiated."""
        return [i for i, a in enumerate(self.arrays) if a.dtype.kind in "fc"]

    def flat(self, function: Callable[..., Any]) -> Callable[..., list[Any]]:
        """Make a function of tensors to a list of tensors of one that takes the arguments."""
        leaves, structure = self._leaves()

        def call(*tensors: Any) -> list[Any]:
            given = iter(tensors)
            filled = [next(given) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
            args, kwargs = tree.unflatten(structure, filled)
            found = function(*args, **kwargs)
            outputs = [found] if hasattr(found, "dtype") else tree.flatten(found)[0]  # Dynamo reads this too
            return [y for y in outputs if hasattr(y, "dtype")]

        return call

    def _leaves(self) -> tuple[list[Any], Any]:
        return tree.flatten([list(self.args), self.kwargs])


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"conformance_rules_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(
        spec
    )  # torch.compile imports it by name
    spec.loader.exec_module(module)
    return module


def _found() -> Iterator[tuple[str, dict[str, Callable[..., Any]]]]:
    for name in pullback.__all__:
        if isinstance(getattr(getattr(pullback, name), "rule", None), Rule):
            yield name, {"": getattr(pullback, name)}
    for name in pullback.ops.__all__:
        function = getattr(pullback.ops, name)
        if isinstance(getattr(function, "rule", None), Rule) and function.__name__ == name:  # no second name
            yield f"ops.{name}", {"": function}
    for path in FILES:
        for name, value in vars(_load(path)).items():
            if name.startswith("_"):
                continue
            if isinstance(getattr(value, "rule", None), Rule):
                yield f"{path.stem}.{name}", {"": value}
            elif isinstance(value, dict):
                yield f"{path.stem}.{name}", value


RULES = dict(_found())
CASES = {
    f"{name}-{i}": Case(f"{name}-{i}", functions, args, kwargs)
    for name, functions in RULES.items()
    for i, (args, kwargs) in enumerate(examples_of(next(iter(functions.values()))))
}
