"""What an override hands to a host, and what it gives back for a model: that model, with another class.

One state, two classes. What comes back has the very attributes of the original, its layers, its weights, its
mode, because both have one dictionary. Its class is a subclass of the original's, made on the fly, in which
one method runs the original inside the override. So whatever takes such a model takes this one too, and a
change of one is a change of both, but for the gradients, and for what a framework must keep apart (`own`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, NoReturn

from pullback.errors import OverrideError


class Gradients(NamedTuple):
    """The gradients that an override gives, by kind, and what is done where a host finds a place for one."""

    by_kind: Mapping[Any, Any]
    make: Callable[..., Any]  # kind, names, inputs, gradient ↦ the operation of one place
    wrap: Callable[[Any, Any], Callable[..., Any]]  # a layer's function, gradient ↦ one with that gradient
    check: Callable[..., None]  # judges how many occurrences there were


@dataclass(eq=False)
class Override:
    """What belongs to one override of a model, and not to the model."""

    again: ClassVar[Callable[..., Any]]  # `pb.override`, which stands above: it puts itself here
    original: Any
    gradients: Mapping[Any, Any]
    word: Callable[[Any], Any]  # names a kind by something that can be stored
    overridden: Any  # runs the original inside the override, and counts the occurrences
    own: dict[str, Any] = field(default_factory=dict)  # attributes that are not those of the original

    def stored(self) -> dict[Any, Any]:
        """Give the gradients by kinds that can be stored."""
        return {self.word(kind): gradient for kind, gradient in self.gradients.items()}


class _Told:
    """An attribute that tells of the override; one of the user's own that has its name wins."""

    def __init__(self, tell: Callable[[Override], Any]) -> None:
        self.tell = tell

    def __get__(self, seen: Any, kind: Any = None) -> Any:
        return self if seen is None else self.tell(seen._pullback)


_TOLD = {
    "original": _Told(lambda override: override.original),
    "replaced": _Told(lambda override: override.overridden.replaced),
}


class Seen:
    """A model with other gradients inside. `replaced` counts those of the last call."""

    __slots__ = ()
    _pullback: Override

    def __new__(cls, *_: Any, **__: Any) -> NoReturn:
        raise OverrideError.about(
            cls.__name__,
            found="a new model was to be made of the class of an overridden one",
            expected="the class of the model itself, and an override of what it makes",
            why="the gradients belong to one model, and not to its class: they would be lost",
            fix="pb.override(make(model.original), {…})",
        )

    def __dir__(self) -> list[str]:
        # What looks for the parts of a model by its attributes must not find the original as one of them.
        return sorted({*dir(self._pullback.original), *self._pullback.own})

    def __reduce_ex__(self, protocol: Any) -> Any:
        blank: Any = object.__new__(class_of(self))
        blank.__dict__.update({**vars(self), **self._pullback.own})
        return Override.again, (blank, self._pullback.stored())


class _Own:
    """An attribute that the original has for itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, seen: Any, kind: Any = None) -> Any:
        if seen is None:
            return self
        try:
            return seen._pullback.own[self.name]
        except KeyError:
            raise AttributeError(self.name) from None

    def __set__(self, seen: Any, value: Any) -> None:
        seen._pullback.own[self.name] = value

    def __delete__(self, seen: Any) -> None:
        seen._pullback.own.pop(self.name, None)


def class_of(model: Any) -> type:
    """Give the class of a model as its user knows it."""
    kind = type(model)
    return kind.__bases__[1] if issubclass(kind, Seen) else kind


def sorted_out(
    kinds: Iterable[Any], is_layer: Callable[[Any], bool], operation: Callable[[Any], str]
) -> tuple[dict[str, Any], list[Any]]:
    """Sort kinds into operations, by their names, and layers."""
    listed = list(kinds)
    layers = [kind for kind in listed if is_layer(kind)]
    return {operation(kind): kind for kind in listed if not is_layer(kind)}, layers


def kind_of(layer: Any, kinds: Iterable[Any]) -> Any:
    """Find the kind that a layer is of, by its class or the name of that; None if it is of none."""
    called = class_of(layer)
    return next((kind for kind in kinds if kind == called.__name__ or kind is called), None)


def seen_as(
    mixin: type,
    override: Override,
    method: str,
    own: Iterable[str],
    *,
    module: str = "",
    made: Callable[[type], Any] = bool,
) -> Any:
    """Give a model again, with a class whose method runs it inside an override.

    `own` names the attributes that the class keeps for itself, `module` where it says that it is defined;
    `made` is told of a new class.
    """
    original = override.original
    base = class_of(original)
    subclasses: list[type] = type.__subclasses__(base)
    known = [kind for kind in subclasses if kind.__bases__ == (mixin, base)]
    if not known:
        names = {"__module__": module or base.__module__, "__qualname__": base.__qualname__}
        parts = _parts(base, method, own) | names
        known = [types.new_class(base.__name__, (mixin, base), {}, lambda space: space.update(parts))]
        made(known[0])
    seen: Any = object.__new__(known[0])
    object.__setattr__(seen, "_pullback", override)
    object.__setattr__(seen, "__dict__", vars(original))
    return seen


def _parts(base: type, method: str, own: Iterable[str]) -> dict[str, Any]:
    @functools.wraps(getattr(base, method))
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._pullback.overridden(*args, **kwargs)

    return {
        **{name: told for name, told in _TOLD.items() if not hasattr(base, name)},
        **{name: _Own(name) for name in own},
        method: run,
        "__slots__": ("_pullback",),
        "__doc__": base.__doc__,
    }
