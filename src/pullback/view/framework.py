"""What the checker asks of a framework: tensors of arrays and back, and every way to differentiate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pullback.hosts.base import Host
from pullback.hosts.operation import Tensor
from pullback.view.native import Natives
from pullback.view.subject import Array, Arrays
from pullback.view.words import Words

Function = Callable[..., Any]
Run = Callable[[Sequence[Any]], list[Tensor]]
Vjp = Callable[[Sequence[Any], Sequence[Tensor]], Sequence[Any]]
Pull = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class Framework(ABC):
    """Answer for one framework."""

    host: Host
    natives: Natives
    words: Words
    mends_shapes = False  # whether the framework puts a cotangent of a wrong shape right in silence
    builtin: ClassVar[tuple[str, ...]]  # packages whose functions nobody who checks them can mend
    slow: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def tensor(self, leaf: Any, name: str = "an output") -> Tensor:
        """Make a tensor of a leaf; `name` is for an error."""

    @abstractmethod
    def array(self, tensor: Tensor) -> Array:
        """Give the array of a tensor."""

    @abstractmethod
    def sources(self, inputs: Arrays) -> list[Any]:
        """Make the sources of a call from arrays."""

    @abstractmethod
    def constants(self, arrays: Arrays) -> list[Tensor]:
        """Make tensors of arrays, in which nothing of the call is differentiated."""

    @abstractmethod
    def converted(self, tensor: Tensor, dtype: str) -> Tensor:
        """Give a tensor another dtype."""

    @abstractmethod
    def vjp(self, run: Run, sources: Sequence[Any], cotangents: Sequence[Tensor]) -> Sequence[Any]:
        """Pull cotangents back to the differentiable sources, None where nothing flows."""

    def connected(self, output: Tensor) -> bool:
        """Tell whether an output has a gradient, where the host says so of it."""
        return True

    def as_program(self, pull: Pull) -> Pull:
        """Give a pullback called by hand as one program, where operations one by one cost more."""
        return pull

    @abstractmethod
    def second(
        self, run: Run, sources: Sequence[Any], cotangents: Sequence[Tensor], weights: Sequence[Tensor | None]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Differentiate ⟨weights, pullback⟩ by the differentiable sources and by the cotangents."""

    @abstractmethod
    def jvp(self, run: Run, sources: Sequence[Any], tangents: Sequence[Tensor | None]) -> Sequence[Any]:
        """Push tangents of the sources forward; None for a source that has none."""

    @abstractmethod
    def rows(self, run: Run, sources: Sequence[Any]) -> list[Sequence[Any]]:
        """Give, per output, its Jacobian by the differentiable sources, computed in one go."""

    @abstractmethod
    def compiled(self) -> Mapping[str, tuple[Run, Vjp]]:
        """Give the compiled variants by name."""

    @abstractmethod
    def opaque(self) -> bool:
        """Tell whether the gradient runs through code that the host cannot see into."""

    @abstractmethod
    def exported(self) -> tuple[Run, Run, Sequence[Any]]:
        """Give the flat function, what is loaded again after it was saved, and sources of both."""
