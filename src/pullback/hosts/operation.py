"""What a host is given: an operation on a flat list of tensors, and the pullback that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pullback.errors import CotangentShapeError
from pullback.hosts.specs import same_shape, show_shape
from pullback.rule import Intent

if TYPE_CHECKING:
    from pullback.hosts.base import Host

Tensor = Any
Function = Callable[..., Any]


class Cotangents(NamedTuple):
    """Hold what one run of a pullback gave: for the inputs, for captured variables, and the next order."""

    inputs: list[Tensor | None]
    variables: list[Tensor | None]
    second: Callable[..., Any] | None = None


class Pullback:
    """Take cotangents of the outputs to cotangents of the inputs; a missing cotangent is None."""

    __slots__ = ()

    grad: Function | None = None  # the user's own, where there is one: it may hold tensors
    reruns = False  # whether it keeps its inputs alone, and computes what it needs again

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        raise NotImplementedError

    def zeros(self) -> list[Tensor]:
        """Make a zero cotangent for every output."""
        raise NotImplementedError

    def require(self, variables: Sequence[Any]) -> None:
        """Raise unless the pullback has a place for the gradients of these captured variables."""
        raise AssertionError("it reads no variable")

    def made_of(self, tensors: Sequence[Tensor], grad: Function | None) -> Pullback:
        """Give the same pullback of other tensors, and of another `grad` in the place of the user's.

        Who keeps the tensors elsewhere asks for one of none, and later for one of those that are kept.
        """
        return self


class Rerun(Pullback):
    """Keep the tensors of an operation alone, and compute what else is needed again."""

    reruns = True

    def __init__(self, operation: Any, tensors: Sequence[Tensor], outlines: list[Any]) -> None:
        self.operation = operation
        self.tensors = tensors
        self.outlines = outlines  # of the outputs

    def made_of(self, tensors: Sequence[Tensor], grad: Function | None) -> Rerun:
        return type(self)(self.operation, tensors, self.outlines)

    def zeros(self) -> list[Tensor]:
        return list(map(self.operation.host.zeros, self.outlines))


def filled(pull: Pullback, cotangents: Sequence[Tensor | None]) -> list[Tensor]:
    """Put zeros in the place of missing cotangents."""
    if all(cotangent is not None for cotangent in cotangents):
        return list(cotangents)
    return [zero if c is None else c for zero, c in zip(pull.zeros(), cotangents)]


def fitted(tangents: Sequence[Any], outputs: Sequence[Tensor], operation: Operation) -> list[Any]:
    """Hold what a pushforward gave against the outputs, and cast it to their dtypes."""
    host, results = operation.host, list(tangents)
    for i, (tangent, output) in enumerate(zip(tangents, outputs)):
        if tangent is None or not host.differentiable(output) or host.fit([tangent], [output]):
            continue
        have, want = host.spec(tangent).shape, host.spec(output).shape
        if have is not None and want is not None and not same_shape(have, want):
            raise CotangentShapeError.about(
                operation.where,
                found=f"the pushforward returned shape {show_shape(have)} for an output of shape "
                f"{show_shape(want)}",
                expected="a tangent of its output's shape",
                fix=f"return a tangent of shape {show_shape(want)}",
            )
        results[i] = host.conform(tangent, output)
    return results


class Operation(Protocol):
    """A rule bound to one call, seen flat."""

    @property
    def name(self) -> str: ...

    @property
    def where(self) -> str: ...

    @property
    def order(self) -> int | None: ...

    @property
    def intent(self) -> Intent: ...

    @property
    def rule(self) -> Any: ...

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
        """Run the body."""

    def pushforward(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor] | None:
        """Run the user's own pushforward; None when there is none."""

    def second(self, count: int, variables: Sequence[Any] = ()) -> Operation:
        """Give the operation (tensors, cotangents) → cotangents whose gradient is the user's `gradgrad`."""

    @property
    def plan(self) -> Any:
        """The call that it belongs to: asked by who writes an error."""

    @property
    def host(self) -> Host: ...

    @property
    def has_pushforward(self) -> bool: ...

    @property
    def identity(self) -> Any:
        """Name the code that runs, for what a host remembers of it."""

    @property
    def memo(self) -> dict[Any, Any]:
        """Offer a place, as long-lived as the rule, for what a host has measured."""

    def key(self, extra: Any) -> Any:
        """Name the call up to the values of its tensors, for `memo`."""

    def captured(self) -> Iterable[tuple[str, Any]]:
        """List what the body can reach by name without being handed it."""


class Derived:
    """An operation made of another one, such as its pullback or its batch: it has the same call and host."""

    def __init__(self, operation: Operation) -> None:
        self.plan = operation.plan
        self.name = f"{operation.name}_grad"
        self.where = operation.where
        self.order: int | None = None
        self.intent = operation.intent
        self.rule: Any = None  # it is none of a user's
        self.host = operation.host
        self.has_pushforward = False
        self.identity = operation.identity
        self.memo: dict[Any, Any] = {}

    def key(self, extra: Any) -> Any:
        return extra

    def pushforward(self, tensors: Sequence[Tensor], tangents: Sequence[Tensor]) -> list[Tensor] | None:
        return None

    def second(self, count: int, variables: Sequence[Any] = ()) -> Operation:
        raise AssertionError("only a rule of the user's gives a further order")

    def captured(self) -> Iterable[tuple[str, Any]]:
        return ()


class Around(Derived):
    """An operation that runs another one on other tensors, and is what that one is in all else."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation)
        self.inner = operation
        self.name = operation.name
        self.order = operation.order
        self.memo = operation.memo
        self.has_pushforward = operation.has_pushforward
        self.identity = type(self)  # it has no code of the user's beside that of the inner one
