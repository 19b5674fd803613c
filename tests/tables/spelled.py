"""Tables of functions, spelled compactly: the arguments as an expression, and the functions that take them.

Everything public of a module is named: with the arguments that it is checked at, or with the reason why it is
left out. What a newer framework has beside that is left out as unknown, and said.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from driver import Call

Spelled = Mapping[str, Mapping[str, str]]  # module → arguments → functions
Make = Callable[[Any], Any]


def values() -> dict[str, Any]:
    """Give the arrays that expressions name, always the same ones."""
    rng = np.random.default_rng(7)

    def distinct(low: float, high: float, *shape: int) -> Any:
        """Draw entries that are apart from each other, so that no order is a tie."""
        size = int(np.prod(shape))
        grid = np.linspace(low, high, size + 1)[:-1] + (high - low) / size * rng.uniform(0.2, 0.8, size)
        return rng.permutation(grid).reshape(shape)

    square = distinct(-2, 2, 3, 3)
    general = distinct(-1, 1, 3, 3) + 3 * np.eye(3)
    return {
        "x": distinct(-2.1, 2.3, 3, 4),
        "y": distinct(-1.7, 1.9, 3, 4),
        "z": distinct(-1.3, 1.4, 3, 4),
        "p": distinct(0.3, 3.1, 3, 4),
        "q": distinct(0.4, 2.7, 3, 4),
        "r": distinct(0.5, 2.2, 3, 4),
        "u": distinct(-0.9, 0.9, 3, 4),
        "t": distinct(0.05, 0.95, 3, 4),
        "g": distinct(1.2, 4.1, 3, 4),
        "xs": distinct(-2.1, 2.3, 4),
        "ys": distinct(-1.7, 1.9, 4),
        "ps": distinct(0.3, 3.1, 4),
        "ts": distinct(0.05, 0.95, 4),
        "up": np.sort(distinct(-2.1, 2.3, 4)),
        "one": np.array(0.7),
        "two": np.array(1.9),
        "simplex": np.array([0.1, 0.2, 0.3, 0.4]),
        "xyz": distinct(-2.1, 2.3, 4, 3),
        "abc": distinct(-1.7, 1.9, 4, 3),
        "a": general,
        "b": distinct(-1, 1, 3, 3) + 2 * np.eye(3),
        "sym": square + square.T,
        "pos": square @ square.T + np.eye(3),
        "low": np.tril(general),
        "rhs": distinct(-1.7, 1.9, 3, 2),
        "tall": distinct(-2.1, 2.3, 4, 3),
        "cube": distinct(-2.1, 2.3, 2, 3, 4),
        "c": distinct(-2.1, 2.3, 3, 4) + 1j * distinct(-1.7, 1.9, 3, 4),
        "d": distinct(-1.3, 1.4, 3, 4) + 1j * distinct(-1.1, 1.2, 3, 4),
        "cs": distinct(-2.1, 2.3, 4) + 1j * distinct(-1.7, 1.9, 4),
        "ca": general + 1j * distinct(-1, 1, 3, 3),
        "her": square + square.T + 1j * (np.triu(square, 1) - np.triu(square, 1).T),
        "seq": distinct(-2.1, 2.3, 2, 8, 3),
        "img": distinct(-2.1, 2.3, 1, 5, 6, 2),
        "vol": distinct(-2.1, 2.3, 1, 3, 4, 4, 2),
        "ker1": distinct(-1, 1, 3, 3, 2),
        "ker2": distinct(-1, 1, 2, 3, 2, 3),
        "ker3": distinct(-1, 1, 2, 2, 2, 2, 2),
        "dep": distinct(-1, 1, 2, 2, 2, 2),
        "mask": distinct(-1, 1, 3, 4) > 0,
        "i": np.array([2, 0, 1]),
        "ii": rng.integers(0, 3, (3, 4)),
        "labels": np.array([1, 3, 0]),
        "seg": np.array([0, 0, 2]),
    }


def found_in(module: str, name: str) -> Callable[..., Any] | None:
    """Give a function of a module by its dotted name; None where this version has none."""
    try:
        home = importlib.import_module(module)
        return operator.attrgetter(name)(home)  # type: ignore[no-any-return]
    except (ImportError, AttributeError):
        return None


def calls_of(
    spelled: Spelled, convert: Make, names: Mapping[str, Any]
) -> dict[str, Callable[[], Iterator[Call]]]:
    """Give the calls of all functions that exist, by what is written."""
    made: dict[str, Callable[[], Iterator[Call]]] = {}
    for module, groups in spelled.items():
        for arguments, functions in groups.items():
            for name in functions.split():
                function = found_in(module, name)
                if function is not None:
                    key = f"{module}.{name}({arguments})"
                    made[key] = functools.partial(_calls, function, arguments, convert, names)
    return made


def _calls(
    function: Callable[..., Any], arguments: str, convert: Make, names: Mapping[str, Any]
) -> Iterator[Call]:
    args, kwargs = eval(f"both({arguments})", {**values(), **names, "np": np, "both": _both})
    yield Call(function, _converted(args, convert), _converted(kwargs, convert))


def _converted(value: Any, convert: Make) -> Any:
    """Make tensors of the arrays in a structure."""
    if isinstance(value, dict):
        return {key: _converted(part, convert) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_converted(part, convert) for part in value)
    return convert(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _both(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def left_out_of(spelled: Spelled, left_out: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Give what is not checked, each with the reason."""
    found: dict[str, str] = {}
    for module in spelled:
        checked = {name for functions in spelled[module].values() for name in functions.split()}
        said = {name: why for why, names in left_out.get(module, {}).items() for name in names.split()}
        for name in public(module):
            if name not in checked and not any(other.startswith(f"{name}.") for other in checked):
                found[f"{module}.{name}"] = said.get(name, "not known to this table")
    return found


def public(module: str) -> list[str]:
    """Name the functions of a module."""
    home = importlib.import_module(module)
    found = {name: getattr(home, name) for name in dir(home) if not name.startswith("_")}
    return [name for name, it in found.items() if callable(it) and not inspect.isclass(it)]
