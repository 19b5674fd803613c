"""What a pullback kept, put into one that was made by running the body again.

A higher derivative runs the body again, so that what it keeps depends on the inputs. The values must be those
of the first run all the same: the program may have changed, meanwhile, what the body reads. So both pullbacks
are gone through side by side. In the place of every tensor goes what the host makes of the pair (the value of
the first, the derivative of the second); a pair that does not agree is refused.

What is an object of the user's is compared and not rebuilt. What is the very same object in both holds what
it holds now; the tensors in its attributes are noted before the second run, and compared after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pullback.hosts.base import Host
from pullback.hosts.operation import Pullback

Link = Callable[[Any, Any], Any]  # of two tensors that stand in the same place
_PLAIN = (int, float, complex, str, bytes, type(None), type, ModuleType)
_MANY = 1000  # objects that are looked into; an object of a user's may hold all the world


class ChangedError(Exception):
    """The second run did not keep what the first one kept."""


class Kept:
    """The pullback of a first run, and what the objects that it shares with the next one hold."""

    def __init__(self, pull: Any, host: Host) -> None:
        self.pull = pull
        self.host = host
        self.noted = list(self._shared(pull, set()))

    def within(self, again: Any, link: Link) -> Any:
        """Give the pullback of the second run with the values of the first."""
        for held, name, tensor in self.noted:
            now = vars(held).get(name)
            if now is not tensor:
                _Pairs(self.host, link).merged(tensor, now)
        return _Pairs(self.host, link).merged(self.pull, again)

    def _shared(self, value: Any, seen: set[int]) -> Iterator[tuple[Any, str, Any]]:
        """List the tensors in attributes of the objects that a pullback closes over."""
        if id(value) in seen or len(seen) > _MANY or isinstance(value, _PLAIN) or self.host.is_tensor(value):
            return
        seen.add(id(value))
        if isinstance(value, Pullback) or type(value) in (FunctionType, MethodType, tuple, list, dict):
            for part in _parts(value) or ():
                yield from self._shared(part, seen)
        elif not isinstance(value, type):
            for name, part in getattr(value, "__dict__", {}).items():
                if self.host.is_tensor(part):
                    yield value, name, part


class _Pairs:
    """Go through two values side by side."""

    def __init__(self, host: Host, link: Link) -> None:
        self.host = host
        self.link = link
        self.seen: set[tuple[int, int]] = set()

    def merged(self, a: Any, b: Any) -> Any:
        """Give `b` with the values of `a`."""
        if a is b or (id(a), id(b)) in self.seen or len(self.seen) > _MANY:
            return b
        if self.host.is_tensor(a) and self.host.is_tensor(b):
            return self.link(a, b)
        if type(a) is not type(b):
            raise ChangedError
        if isinstance(a, _PLAIN):
            if not (a == b or (a != a and b != b)):
                raise ChangedError
            return b
        if isinstance(a, (np.ndarray, np.generic)):
            if not _alike(a, b):
                raise ChangedError
            return b
        self.seen.add((id(a), id(b)))
        if type(a) is FunctionType and a.__code__ is not b.__code__:
            return self.rewritten(a, b)
        first, second = _parts(a), _parts(b)
        if first is None or second is None:
            return self.compared(a, b)
        if len(first) != len(second):
            raise ChangedError
        parts = [self.merged(x, y) for x, y in zip(first, second)]
        return b if all(x is y for x, y in zip(parts, second)) else _built(b, parts)

    def rewritten(self, a: FunctionType, b: FunctionType) -> Any:
        """Merge two functions, the second of which a framework wrote anew: by the names of their cells."""
        if a.__name__ != b.__name__ or a.__code__.co_filename == b.__code__.co_filename:
            raise ChangedError  # another `grad`
        kept = dict(zip(a.__code__.co_freevars, _parts(a) or ()))
        parts, names = _parts(b) or [], b.__code__.co_freevars
        merged = [self.merged(kept[n], part) if n in kept else part for n, part in zip(names, parts)]
        return _built(b, merged + parts[len(names) :])

    def compared(self, a: Any, b: Any) -> Any:
        """Compare the attributes of two objects."""
        first, second = getattr(a, "__dict__", None), getattr(b, "__dict__", None)
        if first is not None and second is not None and not type(a).__module__.startswith("pullback."):
            for name in first.keys() & second.keys():
                self.merged(first[name], second[name])
        return b


def _parts(value: Any) -> list[Any] | None:
    """Take a value apart; None for what is not looked into."""
    kind = type(value)
    if isinstance(value, Pullback):
        return None if value.grad is None else [value.grad]
    if kind is FunctionType:
        return [_content(cell) for cell in value.__closure__ or ()] + list(value.__defaults__ or ())
    if kind is MethodType:
        return [value.__self__]
    if kind is functools.partial:
        return [value.func, value.args, value.keywords]
    if isinstance(value, (tuple, list)):
        return list(value)
    return list(value.values()) if isinstance(value, dict) else None


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is deleted, or not bound yet
        return None


def _built(like: Any, parts: list[Any]) -> Any:
    """Put a value together again from other parts."""
    kind = type(like)
    if isinstance(like, Pullback):
        return like.made_of(like.tensors, parts[0])  # type: ignore[attr-defined]
    if kind is FunctionType:
        count = len(like.__closure__ or ())
        made = FunctionType(
            like.__code__,
            like.__globals__,
            like.__name__,
            tuple(parts[count:]) or None,
            tuple(map(CellType, parts[:count])),
        )
        made.__kwdefaults__ = like.__kwdefaults__
        made.__dict__.update(like.__dict__)
        return made
    if kind is MethodType:
        return MethodType(like.__func__, parts[0])
    if kind is functools.partial:
        return functools.partial(parts[0], *parts[1], **parts[2])
    if isinstance(like, dict):
        return kind(zip(like, parts))
    return kind(*parts) if hasattr(like, "_fields") else kind(parts)


def _alike(a: Any, b: Any) -> bool:
    if np.shape(a) != np.shape(b):
        return False
    if np.asarray(a).dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=np.sqrt(np.finfo(a.dtype).eps), atol=0, equal_nan=True))
