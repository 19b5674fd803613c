"""A call of an external function, up to the values of its tensors.

Frameworks hand over flat lists of arrays; the user's functions take the arguments they were written for. A
site knows how one becomes the other, what the call returns, and keeps nothing of the framework: it may live
as long as a compiled program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import tree
from pullback.errors import ExternalError, OptionError, PullbackError
from pullback.hosts.base import Host
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.operation import Tensor
from pullback.hosts.specs import Spec
from pullback.plan import Plan, Slot
from pullback.wrapping import same
from pullback.wrapping.guard import frozen
from pullback.wrapping.shapes import ArraySpec, Layout, layout_of, made_up, of_array, of_host

if TYPE_CHECKING:
    from pullback.wrapping.function import External

Array = np.ndarray[Any, Any]


class Site:
    """Know the statics, the structure and the outputs of a call."""

    def __init__(self, external: External, plan: Plan) -> None:
        from pullback.wrapping import foreign

        self.external = external
        self.rule = plan.rule
        self.plan = dataclasses.replace(plan, host=NUMPY)  # of the same call on arrays
        self.count = plan.count
        self.names = plan.names
        self.layouts: dict[Any, Layout] = {}
        self.promises: dict[
            Any, tuple[Layout, list[Spec]]
        ] = {}  # the same, by what a host shows of its tensors
        self.routines: dict[Any, Any] = {}
        self.forward = foreign.Forward(self)

    def content(self) -> Any:
        """Name the statics by what they are now, for the cache; refuse what has no value to be named by."""
        named = []
        for slot in self.plan.slots:
            hidden: list[Any] = []
            try:
                named.append(statics([slot], lambda leaf: same.content(leaf, hidden)))  # noqa: B023
            except same.MutableError:
                raise self._without_value(slot.name, "a module or another registered class") from None
            if hidden:
                raise self._without_value(slot.name, f"an object of class {type(hidden[0]).__name__}")
        return tuple(named)

    def _without_value(self, name: str, kind: str) -> OptionError:
        return OptionError.about(
            self.rule.where,
            found=f"cache={self.external.options.cache}, and `{name}` is or holds {kind}",
            expected="arguments with a value: arrays, numbers, strings, tuples, dataclasses of these",
            why="results are remembered by values: a change inside of an object would not be seen",
            fix="leave cache= out, or pass what the function reads of the object",
        )

    # ── outputs ──────────────────────────────────────────────────────────────────────────────────────────

    def layout(self, specs: Sequence[Any]) -> Layout | None:
        """Give what the function returns for arguments of such shapes and dtypes, if that is known."""
        key = tuple([(spec.shape, spec.dtype) for spec in specs])
        found = self.layouts.get(key)
        if found is None and self.external.options.output is not None:
            specs = [ArraySpec(spec.shape, spec.dtype) for spec in specs]
            arguments, named = self.plan.arguments(specs), self.plan.named(specs)
            found = layout_of(self.external.options.output, arguments, named, self.rule.where)
            self.layouts[key] = found
        return found

    def ask_again(self) -> None:
        """Forget what was concluded from the statics: an object among them may have changed."""
        self.layouts.clear()
        self.promises.clear()
        for routine in self.routines.values():
            getattr(routine, "patterns", {}).clear()

    def learn(self, arrays: Sequence[Array], returned: Any) -> Layout:
        """Remember what the function returned for such arguments."""
        leaves, structure = tree.flatten(returned)
        # a number takes the dtype that the arguments have
        specs = tuple(
            of_array(leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf, _dtype(leaf, arrays)))
            for leaf in leaves
        )
        layout = Layout(structure, specs)
        self.layouts[tuple((a.shape, a.dtype) for a in arrays)] = layout
        return layout

    def promised(self, host: Host, tensors: Sequence[Tensor]) -> Promised:
        """Promise the specs of the outputs, found out when somebody looks at them."""
        return Promised(self, host, tensors)

    def find(self, host: Host, tensors: Sequence[Tensor]) -> Layout:
        """Find out what the function returns, by running it if nothing else tells."""
        specs = [of_host(host.spec(tensor)) for tensor in tensors]
        found = self.layout(specs)
        if found is None:
            values = _values(tensors)
            if values is not None:  # this run is the call
                self.forward.ahead([frozen(value) for value in values])
            else:
                self._try(specs)
            found = self.layout(specs)
            assert found is not None
        return found

    def _try(self, specs: Sequence[ArraySpec]) -> None:
        """Run the function at made-up numbers, to see what it returns."""
        arrays = made_up(specs)
        if arrays is None:
            raise self._unknown(f"an argument is {next(s for s in specs if s.size is None)}")
        try:
            self.forward([frozen(array) for array in arrays])
        except PullbackError as error:
            raise self._unknown(f"it was tried at made-up numbers, and failed: {error}") from error

    def _unknown(self, found: str) -> ExternalError:
        return ExternalError.about(
            self.rule.where,
            found=f"the shape of its output is not known: {found}",
            expected="output=, which tells shape and dtype without running it",
            why="a compiled program must know its tensors before there are values",
            fix=f"@pb.external(output=lambda {', '.join(self.rule.signature.parameters)}: "
            f"{next(iter(self.rule.signature.parameters), 'x')})",
        )


class Promised(Sequence[Spec]):
    """The specs of the outputs of a call, found out when somebody looks at them.

    A framework that runs the function at once looks only when there are results: then nothing is tried.
    """

    def __init__(self, site: Site, host: Host, tensors: Sequence[Tensor]) -> None:
        self.site = site
        self.host = host
        self.tensors = tensors
        self._known: tuple[Layout, list[Spec]] | None = None

    def _found(self) -> tuple[Layout, list[Spec]]:
        if self._known is None:
            # A host's own shapes and dtypes are read faster than its specs are made.
            key = (self.host.name, *((t.shape, t.dtype) for t in self.tensors))
            known = self.site.promises.get(key)
            if known is None:
                layout = self.site.find(self.host, self.tensors)
                known = self.site.promises[key] = layout, layout.promised
            self._known = known
        return self._known

    @property
    def layout(self) -> Layout:
        """The structure of the outputs."""
        return self._found()[0]

    def __len__(self) -> int:
        return len(self._found()[1])

    def __getitem__(self, index: Any) -> Any:
        return self._found()[1][index]

    def __iter__(self) -> Iterator[Spec]:
        return iter(self._found()[1])


def statics(slots: Sequence[Slot], name: Callable[[Any], Any]) -> Any:
    """Name a call up to the values of its tensors, its statics by a function.

    Raises `MutableError` for a structure that holds more than its parts.
    """
    parts: list[Any] = []
    for slot in slots:
        if not slot.passed and not slot.has_tensor:
            continue  # the function has the default itself
        if not same.shows_all(slot.tree):
            raise same.MutableError
        leaves = [name(leaf) for leaf, place in zip(slot.leaves, slot.places) if place is None]
        parts.append((slot.name, tuple(slot.places), same.structure(slot.tree), tuple(leaves)))
    return tuple(parts)


def _values(tensors: Sequence[Tensor]) -> list[Array] | None:
    """Give the values of tensors, or None where a program is being traced and there are none."""
    try:
        return [np.asarray(tensor) for tensor in tensors]
    except Exception:  # each framework has its own way to say that a tensor has no value
        return None


def _dtype(leaf: Any, arrays: Sequence[Array]) -> np.dtype[Any] | None:
    floats = [a.dtype for a in arrays if a.dtype.kind == "f"]
    return floats[0] if type(leaf) is float and floats else None
