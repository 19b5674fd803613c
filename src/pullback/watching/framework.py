"""What a log asks of a framework, and which framework is asked.

A framework is one file beside this one, with a `FRAMEWORK` in it, by the name of its module. Only those that
the program has imported are asked. A model is attached to once, however many logs it has.
"""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from pullback import hosts, tree
from pullback.errors import NoTensorError, UnsupportedInputError
from pullback.hosts import Role
from pullback.hosts.keras import is_layer
from pullback.watching import watchpoints

if TYPE_CHECKING:
    from pullback.watching.log import Log


class Looking(NamedTuple):
    """What it takes to look at a model no more, and weights of which it is told when a gradient comes."""

    stop: Callable[[], None]
    weights: Sequence[int] = ()


# the parts of a structure with their paths, and what puts such parts together
Opened = tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]]


class Framework(ABC):
    """Look at the gradients of one framework."""

    @abstractmethod
    def seen(self, x: Any, number: int) -> Any:
        """Give a tensor as it is, whose gradient is looked at."""

    @abstractmethod
    def look(self, gradient: Any, number: int) -> Any:
        """Look at a gradient that is at hand, and give it back."""

    def attach(self, model: Any) -> Looking | None:
        """Have the watchpoints in a model looked at; None if it is no model of this framework."""
        return None

    def opened_as(self, value: Any) -> Opened | None:
        """Take a structure of the framework's own kind apart, by paths; None for what is none."""
        return None

    def opened(self) -> None:
        """Hear that a log was opened or closed."""
        return

    def drain(self) -> None:
        """Hand on what is still kept on devices."""
        return


@functools.cache
def framework(name: str) -> Framework | None:
    """Give the file of a framework that is imported; None if gradients cannot be looked at there."""
    module = hosts.part("watching", name)
    return None if module is None else module.FRAMEWORK


def loaded() -> list[Framework]:
    """List the frameworks that the program has imported."""
    found = (framework(hosts.framework_of(host)) for host in hosts.loaded())
    return [each for each in found if each is not None]


def of(x: Any) -> Framework:
    """Find the framework of a tensor; refuse what is none."""
    host = hosts.role(type(x))
    found = None if isinstance(host, Role) else framework(hosts.framework_of(host))
    if found is None:
        raise NoTensorError.about(
            "watch",
            found=f"{type(x).__name__}",
            expected="a tensor of TensorFlow, JAX or PyTorch, whose gradient can be looked at",
            fix='x = pb.watch(x, "after attention")',
        )
    return found


def drain() -> None:
    """Hand on what is still kept on devices."""
    for each in loaded():
        each.drain()


def opened() -> None:
    """Tell the frameworks that a log was opened or closed."""
    for each in loaded():
        each.opened()


def look(gradients: Any, name: str) -> Any:
    """Look at each tensor of a structure, by its path; leave anything else alone."""
    kind = hosts.role(type(gradients))
    if not isinstance(kind, Role):
        return of(gradients).look(gradients, watchpoints.number(name))
    if isinstance(gradients, dict):
        keys = tree.keys_of(gradients)
        return tree.rebuild(gradients, [look(gradients[key], f"{name}.{key}") for key in keys])
    if tree.is_namedtuple(gradients):
        fields = zip(gradients._fields, gradients)
        return tree.rebuild(gradients, [look(g, f"{name}.{field}") for field, g in fields])
    if isinstance(gradients, (tuple, list)):
        return tree.rebuild(gradients, [look(g, f"{name}[{i}]") for i, g in enumerate(gradients)])
    opened = next((found for each in loaded() if (found := each.opened_as(gradients)) is not None), None)
    if opened is None:
        return gradients
    parts, rebuild = opened
    return rebuild([look(part, name + path) for path, part in parts])


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────


class Attached:
    """A model that is looked at, by one log."""

    _shared: dict[int, list[Any]] = {}  # noqa: RUF012  model → how many logs, and what ends it
    _lock = threading.Lock()

    def __init__(self, model: Any) -> None:
        self.model = model
        if model is None:
            return
        with self._lock:
            entry = self._shared.setdefault(id(model), [0, None])
            if not entry[0]:
                entry[1] = _attach(model)
            entry[0] += 1

    def close(self) -> None:
        """Look no more, if no other log does."""
        model, self.model = self.model, None
        if model is None:
            return
        with self._lock:
            entry = self._shared[id(model)]
            entry[0] -= 1
            if not entry[0]:
                del self._shared[id(model)]
                entry[1].stop()

    @property
    def weights(self) -> Sequence[int]:
        """The weights of which it is told when a gradient comes."""
        return () if self.model is None else self._shared[id(self.model)][1].weights

    def unheard(self, log: Log) -> list[str]:
        """Say that nothing was heard of the outputs of a model, if so."""
        if self.model is None or "output" in log.kinds.values():
            return []
        return [
            "no output of the model was heard: it did not run in the block, or a function ran that was "
            "compiled before it; open the log before the first call"
        ]


def _attach(model: Any) -> Looking:
    if is_layer(model):
        found: Looking = import_module("pullback.watching.keras").attach(model)
        return found
    for each in loaded():
        looking = each.attach(model)
        if looking is not None:
            return looking
    raise UnsupportedInputError.about(
        "watch",
        found=f"a {type(model).__name__}",
        expected="a model of Keras, or a module of PyTorch",
        why="a structure of parameters has no places of its own",
        fix="with pb.watch() as log:\n    grads = log.look(jax.grad(loss)(params))",
    )
