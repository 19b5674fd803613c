"""Nested structures: lists, tuples, named tuples, dicts, and what hosts know, taken apart and put together.

A host knows the registered dataclasses and modules of its framework. Anything else is a leaf. Leaves of a
dict are taken in the order of its sorted keys, as TensorFlow and JAX do; the dict itself keeps its order and
type. What `flatten` takes apart, the `Tree` it returns puts together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pullback import hosts

_CONTAINERS = (tuple, list, dict)


def is_container(value: Any) -> bool:
    """Tell whether a value is a structure rather than a leaf."""
    if isinstance(value, _CONTAINERS):
        return type(value) in _CONTAINERS or _holds_anything(type(value))
    return hosts.opener(value) is not None


@functools.lru_cache(maxsize=1024)
def _holds_anything(kind: type) -> bool:
    """Tell a structure from a value that is a tuple of numbers only, such as a torch.Size: that is a leaf."""
    if not issubclass(kind, tuple) or hasattr(kind, "_fields"):
        return True
    length = getattr(kind, "n_sequence_fields", 1)  # of a tuple that C made, as torch.return_types are
    try:
        kind([None] * length)
    except Exception:  # it says in its own way what it cannot hold
        return False
    return True


def is_namedtuple(value: Any) -> bool:
    """Tell whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


@dataclass(eq=False, slots=True)
class Tree:
    """Remember how a structure was built, so that other leaves can take the places of its own."""

    template: Any  # a hollow container, or the type of what a host opened
    children: list[Tree | None]
    build_one: Callable[[Sequence[Any]], Any] | None = None  # puts together what only its host knows

    def build(self, leaves: Iterator[Any]) -> Any:
        """Put leaves, taken in order, into the places of the old ones."""
        parts = [next(leaves) if child is None else child.build(leaves) for child in self.children]
        return rebuild(self.template, parts) if self.build_one is None else self.build_one(parts)


def rebuild(template: Any, parts: Sequence[Any]) -> Any:
    """Make a container of the same kind as `template` from its parts."""
    if isinstance(template, dict):
        copy = template.copy()  # keeps the type: an OrderedDict, a defaultdict …
        copy.update(zip(keys_of(template), parts))
        return copy
    if is_namedtuple(template):
        return type(template)(*parts)
    return type(template)(parts)


def keys_of(mapping: Mapping[Any, Any]) -> list[Any]:
    """List the keys of a dict in the order in which its leaves are taken."""
    try:
        return sorted(mapping)
    except TypeError:  # keys of kinds that do not compare
        return list(mapping)


def flatten(value: Any) -> tuple[list[Any], Tree | None]:
    """Take a structure apart into its leaves and the tree that rebuilds it; a lone leaf has no tree."""
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Any, leaves: list[Any]) -> Tree | None:
    if not is_container(value):
        leaves.append(value)
        return None
    if not isinstance(value, _CONTAINERS):  # what only a host knows
        parts, build_one = opened(value)
        return Tree(type(value), [_flatten(part, leaves) for part in parts], build_one)
    # The template keeps the shape only: a tree may outlive a call, and must not keep its tensors alive.
    hollow = rebuild(value, [None] * len(value))
    return Tree(hollow, [_flatten(part, leaves) for part in parts_of(value)])


def opened(value: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Take a structure that a host knows apart: its parts, and what puts such parts together."""
    opener = hosts.opener(value)
    assert opener is not None
    return opener(value)


def unflatten(tree: Tree | None, leaves: Sequence[Any]) -> Any:
    """Put a structure together again."""
    return leaves[0] if tree is None else tree.build(iter(leaves))


def parts_of(container: Any) -> list[Any]:
    """List the direct parts of a container."""
    if isinstance(container, (tuple, list)):
        return list(container)
    return [container[key] for key in keys_of(container)]


def put(other: Callable[[Any], Any], value: Any) -> Any:
    """Give plain tuples, lists and dicts again, with what a function makes of each leaf in its place."""
    if type(value) in (tuple, list):
        return type(value)([put(other, part) for part in value])
    if type(value) is dict:
        return {key: put(other, part) for key, part in value.items()}
    return other(value)


def match(tree: Tree | None, value: Any) -> list[Any] | None:
    """Lay a value out along a tree, leaf for leaf; `None` may stand for a whole branch.

    Returns None when the value has another structure.
    """
    if tree is None:
        return [value]
    count = len(tree.children)
    if value is None:
        parts: list[Any] = [None] * count
    elif tree.build_one is not None:
        if type(value) is not tree.template:
            # What is opened as a single part may be given as that part: a module by the dict of its tensors.
            return match(tree.children[0], value) if count == 1 else None
        parts = opened(value)[0]
        if len(parts) != count:
            return None
    elif isinstance(tree.template, dict):
        if not isinstance(value, Mapping) or set(value) - set(tree.template):
            return None
        parts = [value.get(key) for key in keys_of(tree.template)]
    elif isinstance(value, (tuple, list)) and len(value) == count:
        parts = list(value)
    else:
        return None
    leaves: list[Any] = []
    for child, part in zip(tree.children, parts):
        matched = match(child, part)
        if matched is None:
            return None
        leaves += matched
    return leaves
