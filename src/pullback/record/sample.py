"""What was seen of a rule: the calls of it that differ, with copies of their arguments.

Framework-free. An array is a value that was seen; a `Spec` stands where a graph was traced and there was no
value yet; everything else is a static and is kept as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from pullback import tree
from pullback.declare import Declaration
from pullback.rule import Intent
from pullback.view.declared import said_of
from pullback.view.definition import Definition

MOST = 1000  # kinds of calls that are counted
Location: TypeAlias = "tuple[str, int, str, str]"  # file, line, name, key


@dataclass(frozen=True)
class Spec:
    """Hold the shape and dtype of a tensor without a value; None is a length nobody knows yet."""

    shape: tuple[int | None, ...] | None
    dtype: str


@dataclass(frozen=True)
class Placeholder:
    """Stand for something without arithmetic that its framework makes anew, such as a random key."""

    framework: str
    shape: tuple[int | None, ...]
    dtype: str


@dataclass
class Sample:
    """Hold the arguments of one call, and the framework and device that its tensors belong to.

    `still` are the places of leaves that the program asked no gradient of; `tied` says which leaf is the very
    tensor that another place holds; `held` are tensors that a callable among the arguments may hold, too, by
    place. `function` is the closure that saw these values. Both are of this process.
    """

    leaves: list[Any]
    structure: tree.Tree | None
    framework: str = ""
    device: str = ""
    still: frozenset[int] = frozenset()
    tied: dict[int, int] = field(default_factory=dict)
    held: dict[int, Callable[[], Any]] = field(default_factory=dict)
    function: Callable[..., Any] | None = None

    @property
    def has_values(self) -> bool:
        """Tell whether every tensor was seen with its value."""
        return not any(isinstance(leaf, Spec) for leaf in self.leaves)

    def emptied(self) -> list[type]:
        """Give the kinds of the structures among the arguments that hold nothing."""
        given = self.structure.children[0] if self.structure is not None else None
        return _hollow(given) if given is not None and given.children else []

    def describe(self) -> str:
        """Write the tensors' dtypes and shapes as a person would."""
        return ", ".join(text for text in map(described, self.leaves) if text)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Give the arguments back, in their structure."""
        args, kwargs = tree.unflatten(self.structure, self.leaves)
        return args, kwargs


def _hollow(structure: tree.Tree | None) -> list[type]:
    if structure is None:
        return []
    if not structure.children:
        made = structure.template
        return [made if isinstance(made, type) else type(made)]
    return [kind for child in structure.children for kind in _hollow(child)]


def _many(structure: tree.Tree | None) -> int:
    """Count the leaves of a structure."""
    return 1 if structure is None else sum(map(_many, structure.children))


def described(leaf: Any) -> str:
    """Write the dtype and shape of a tensor; nothing for a static."""
    if not isinstance(leaf, (np.ndarray, Spec)):
        return ""
    if leaf.shape is None:
        return f"{leaf.dtype}[…]"
    name = leaf.dtype if isinstance(leaf, Spec) else leaf.dtype.name
    return f"{name}[{','.join('?' if n is None else str(n) for n in leaf.shape)}]"


@dataclass
class Recorded:
    """Hold what is known of one rule: where it stands, how to call it, and the calls seen.

    `framework` is empty for a rule that runs on any. `user` is what the user wrote, `signature` how it is
    called, where the function itself does not tell; `intent` is a claim that the maker of the rule states;
    `fixed` are the places of arguments that it differentiates past; `facts` what its code holds, in words;
    `used` the places of outputs that a cotangent came from, by the number of outputs; `moved` those of the
    tensors that a gradient flows to, by their number, where the framework tells.
    """

    function: Callable[..., Any]
    name: str
    kind: str
    module: str
    path: str
    line: int
    framework: str = ""
    calls: int = 0
    samples: dict[Any, Sample] = field(default_factory=dict)
    user: Any = None
    signature: inspect.Signature | None = None
    intent: Intent | None = None
    fixed: tuple[int, ...] = ()
    key: str = ""  # the same in every process
    facts: Mapping[str, str] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)  # calls that could not be recorded, by reason
    used: dict[int, set[int]] = field(default_factory=dict)
    moved: dict[int, set[int]] = field(default_factory=dict)
    further: set[Any] = field(default_factory=set)  # kinds of calls that were seen and not kept
    shown: str = ""  # its name, made distinct
    qualified: str = ""  # its name as an import spells it

    @classmethod
    def of(cls, known: Definition, key: str = "", facts: Mapping[str, str] | None = None) -> Recorded:
        """Make the record of a function or rule."""
        function, user = known.kept()
        return cls(
            function, known.name, known.kind, known.module, *known.location, known.framework, user=user,
            signature=known.signature, intent=known.intent, fixed=known.fixed,
            key=key, facts=facts or {}, qualified=known.qualified,
        )  # fmt: skip

    def said(self) -> Declaration:
        """Give what is said of the rule from outside."""
        name, facts = self.named
        location = (self.path, self.line)
        return said_of(self.function, self.user, name=name, location=location, maker=self.intent, facts=facts)

    def asked(self, sample: Sample) -> Sample:
        """Leave still what no gradient flows to in any call of the program, where the framework tells."""
        given = sample.structure.children[0] if sample.structure is not None else None
        places: list[int] = []
        count = 0
        for k, child in enumerate(given.children if given is not None else ()):
            many = _many(child)
            places += [] if k in self.fixed else range(count, count + many)
            count += many
        places = [i for i in places if sample.leaves[i] is not None]
        moved = self.moved.get(len(places))
        if not moved:
            return sample
        still = {i for k, i in enumerate(places) if k not in moved}
        return replace(sample, still=sample.still | still)

    @property
    def named(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Name the rule as a declaration does: by its qualified name, and by what it holds."""
        return self.qualified, tuple(self.facts.items())

    @property
    def declared_as(self) -> str:
        """Give the key that declares this rule, and none that the same line made."""
        told = self.shown[len(self.name) :] if self.shown.startswith(f"{self.name}[") else ""
        return f"{self.qualified}{told}"

    @property
    def location(self) -> Location:
        """Name the rule in a way that another process understands."""
        return (self.path, self.line, self.name, self.key)

    def wants(self, hollow: Sample, limit: int) -> bool:
        """Tell whether a call of this signature might be kept; nothing of it was copied yet."""
        if len(self.samples) >= limit and all(s.has_values for s in self.samples.values()):
            return False
        known = self.samples.get(signature(hollow))
        return known is None or not known.has_values

    def passed(self, hollow: Sample) -> None:
        """Count the kind of a call that is not kept, where no kept one is of that kind."""
        if len(self.further) < MOST and signature(hollow) not in self.samples:
            self.further.add(signature(hollow, kind=True))

    @property
    def unchecked(self) -> int:
        """Count the kinds of calls of which none was kept."""
        return len(self.further - {signature(s, kind=True) for s in self.samples.values()})

    def keep(self, sample: Sample, limit: int) -> bool:
        """Keep a call if it differs from those kept; one with values replaces one without."""
        key = signature(sample)
        known = self.samples.get(key)
        if known is None and len(self.samples) >= limit:
            if not sample.has_values:
                return False
            hollow = [k for k, s in self.samples.items() if not s.has_values]
            if not hollow:
                return False
            self.further.add(signature(self.samples.pop(hollow[0]), kind=True))
        elif known is not None and (known.has_values or not sample.has_values):
            return False
        self.samples[key] = sample
        return True


def signature(sample: Sample, *, kind: bool = False) -> Any:
    """Say what makes two calls different: framework, structure, shapes, dtypes and statics.

    Of one `kind` are calls that differ in nothing but objects, which a program may make anew each time.
    """
    keys = [_key(leaf, kind=kind) for leaf in sample.leaves]
    return (sample.framework, _shape_of(sample.structure), tuple(keys), sample.still)


def _shape_of(structure: tree.Tree | None) -> Any:
    if structure is None:
        return None
    keys = tuple(map(str, structure.template)) if isinstance(structure.template, dict) else ()
    return (type(structure.template), keys, tuple(map(_shape_of, structure.children)))


def _key(leaf: Any, *, kind: bool = False) -> Any:
    if isinstance(leaf, np.ndarray):
        return ("tensor", leaf.shape, leaf.dtype.name)
    if isinstance(leaf, Spec):
        return ("tensor", leaf.shape, leaf.dtype)
    if isinstance(leaf, (bool, int, float, complex, str, bytes, type(None), Placeholder)):
        return (type(leaf), leaf)
    if isinstance(leaf, tuple):  # one that is no structure, such as a torch.Size
        return (type(leaf), *map(_key, leaf))
    return (type(leaf), 0 if kind else id(leaf))
