"""What an external function returns, known before it runs: structure, shapes and dtypes.

A framework that compiles must know its tensors ahead of their values. `output=` says it: a function of the
arguments' specs, or a spec. Without it the function is run once per kind of input, at the real values where
there are any. A layout never holds a value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import tree
from pullback.dtypes import Kind, kind
from pullback.errors import DefinitionError
from pullback.hosts.specs import Spec, show_shape
from pullback.outputs import TENSOR, Outputs, by_default
from pullback.rule import shown_signature
from pullback.wrapping import same

Array = np.ndarray[Any, Any]
_FIX = "output=lambda x: x   # like x; or x.replace(shape=(3,)), or np.empty(3), or a tuple or dict of them"


@dataclass(frozen=True)
class ArraySpec:
    """Describe an array: its shape, None where a length is unknown, and its dtype."""

    shape: tuple[int | None, ...] | None
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int | None:
        """The number of axes, None if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def size(self) -> int | None:
        """The number of elements, None if unknown."""
        if self.shape is None or None in self.shape:
            return None
        return int(np.prod([n or 0 for n in self.shape], dtype=int))

    def replace(self, shape: Any = ..., dtype: Any = ...) -> ArraySpec:
        """Give the same spec with another shape or dtype."""
        return ArraySpec(
            self.shape
            if shape is ...
            else tuple(np.atleast_1d(shape))
            if np.ndim(shape) == 0
            else tuple(shape),
            self.dtype if dtype is ... else np.dtype(dtype),
        )

    def __str__(self) -> str:
        return f"{self.dtype.name} {'of unknown rank' if self.shape is None else show_shape(self.shape)}"


def kind_of(dtype: np.dtype[Any]) -> Kind:
    """Tell the kind of number of a dtype."""
    return kind(dtype.name)


def smooth(dtype: np.dtype[Any]) -> bool:
    """Tell whether a gradient can flow through a dtype."""
    return kind_of(dtype) in ("floating", "complex")


def for_host(spec: ArraySpec) -> Spec:
    """Write a spec as hosts read it."""
    return Spec(spec.shape, spec.dtype.name, kind_of(spec.dtype))


def of_host(spec: Spec) -> ArraySpec:
    """Read a spec as hosts write it."""
    return ArraySpec(spec.shape, np.dtype(spec.dtype))


def of_array(array: Array) -> ArraySpec:
    """Describe an array."""
    return ArraySpec(array.shape, array.dtype)


@dataclass(frozen=True)
class Layout:
    """Hold the structure of what a function returns, and the specs of its leaves."""

    tree: tree.Tree | None
    specs: tuple[ArraySpec, ...]

    @functools.cached_property
    def form(self) -> Any:
        """What two layouts have in common that a derivative takes for the same: all but shapes and dtypes."""
        return len(self.specs), same.structure(self.tree)

    @functools.cached_property
    def outputs(self) -> Outputs:
        """The form of what is returned, as rules know it."""
        return Outputs(self.tree, (TENSOR,) * len(self.specs), by_default(self.tree))

    @functools.cached_property
    def promised(self) -> list[Spec]:
        """The specs as hosts read them."""
        return [for_host(spec) for spec in self.specs]


def layout_of(
    output: Any, arguments: tuple[list[Any], dict[str, Any]], names: Mapping[str, Any], where: str
) -> Layout:
    """Read `output=`: call it with the specs of the arguments if it is a function."""
    if _is_spec(output):
        found = output
    elif callable(output):
        args, kwargs = chosen(output, arguments, names)
        found = output(*args, **kwargs)
    else:
        found = output
    leaves, structure = tree.flatten(found)
    return Layout(structure, tuple(_read(leaf, where) for leaf in leaves))


def chosen(
    function: Callable[..., Any], arguments: tuple[list[Any], dict[str, Any]], names: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Give a function the arguments that it names, or all of them if it names none that are known."""
    known = shown_signature(function)
    if known is None:  # it takes what the function takes
        return arguments
    parameters = list(known.parameters.values())
    single = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if len(single) == len(parameters) and all(p.name in names or p.default is not p.empty for p in single):
        by_position = [p for p in single if p.kind is not p.KEYWORD_ONLY and p.name in names]
        by_name = {p.name: names[p.name] for p in single if p.kind is p.KEYWORD_ONLY and p.name in names}
        if all(p.name in names for p in single if p.kind is not p.KEYWORD_ONLY):
            return [names[p.name] for p in by_position], by_name
        return [], by_name | {p.name: names[p.name] for p in by_position}
    return arguments


def _is_spec(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _read(leaf: Any, where: str) -> ArraySpec:
    if isinstance(leaf, ArraySpec):
        return leaf
    if not _is_spec(leaf):
        raise DefinitionError.about(
            where,
            found=f"output= gave a {type(leaf).__name__}: {leaf!r}"[:120],
            expected="a spec: anything with a shape and a dtype, or a structure of such",
            fix=_FIX,
        )
    shape = None if leaf.shape is None else tuple(None if n is None else int(n) for n in leaf.shape)
    dtype = getattr(leaf.dtype, "as_numpy_dtype", None) or str(leaf.dtype).removeprefix("torch.")
    return ArraySpec(shape, np.dtype(dtype))


def made_up(specs: Sequence[ArraySpec]) -> list[Array] | None:
    """Make arrays to try a function at, of moderate positive numbers; None if a length is unknown."""
    rng = np.random.default_rng(6)
    arrays: list[Array] = []
    for spec in specs:
        if spec.shape is None or None in spec.shape:
            return None
        shape = [n or 0 for n in spec.shape]
        if smooth(spec.dtype):
            arrays.append(rng.uniform(0.5, 1.5, shape).astype(spec.dtype))
        else:
            arrays.append(np.zeros(shape, spec.dtype))
    return arrays
