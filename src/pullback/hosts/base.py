"""What a host must offer, and what a host is given.

A host executes; all thinking about forms, names and errors happens in front of it, in `plan.py` and
`contract.py`. It is handed an `Operation`: tensors in, tensors out, and the pullback that belongs to them.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from pullback.dtypes import Kind
from pullback.errors import CotangentShapeError
from pullback.hosts.overrides import Gradients
from pullback.rule import Intent

Tensor = Any
Function = Callable[..., Any]
# takes a structure apart: its parts, and what puts such parts together
Opener = Callable[[Any], "tuple[list[Any], Callable[[Sequence[Any]], Any]]"]


class Spec(NamedTuple):
    """Describe a tensor: its shape (None where unknown), its dtype and the kind of number in it."""

    shape: tuple[int | None, ...] | None
    dtype: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.dtype} {'of unknown rank' if self.shape is None else show_shape(self.shape)}"


def show_shape(shape: tuple[int | None, ...]) -> str:
    """Write a shape as Python does, with ? for an unknown length."""
    lengths = ["?" if length is None else str(length) for length in shape]
    return f"({lengths[0]},)" if len(lengths) == 1 else f"({', '.join(lengths)})"


def same_shape(a: tuple[int | None, ...], b: tuple[int | None, ...]) -> bool:
    """Tell whether two shapes can be one, where None is a length that nobody knows."""
    return a == b or (len(a) == len(b) and all(m is None or n is None or m == n for m, n in zip(a, b)))


def broadcast_axes(big: tuple[int | None, ...], small: tuple[int | None, ...]) -> tuple[int, ...] | None:
    """List the axes of `big` along which `small` was broadcast; None when it cannot have been."""
    extra = len(big) - len(small)
    if extra < 0:
        return None
    axes = list(range(extra))
    for axis, (m, n) in enumerate(zip(big[extra:], small), start=extra):
        if n == 1 and m != 1:
            axes.append(axis)
        elif m is not None and n is not None and m != n:
            return None
    return tuple(axes)


def summed_axes(have: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    """List the axes to sum a cotangent over; refuse one that was not broadcast."""
    axes = broadcast_axes(have, want)
    if axes is None:
        raise CotangentShapeError.about(
            "unbroadcast",
            found=f"dx has shape {show_shape(have)}, like has shape {show_shape(want)}",
            expected="a shape to which that of `like` broadcasts",
            fix="pass the input that was broadcast as like=",
        )
    return axes


class Cotangents(NamedTuple):
    """Hold what one run of a pullback gave: for the inputs, for captured variables, and the next order."""

    inputs: list[Tensor | None]
    variables: list[Tensor | None]
    second: Callable[..., Any] | None = None


class Met(NamedTuple):
    """A rule that was met inside a function: its name, and what it claims to be."""

    name: str
    intent: Intent


@contextlib.contextmanager
def meeting(host: Any) -> Iterator[list[Met]]:
    """Let a host run the bodies of rules without the rules; the list collects those that it meets."""
    met: list[Met] = []
    before, host.bypassed = host.bypassed, met
    try:
        yield met
    finally:
        host.bypassed = before


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
    """What an operation that stands for a part of another one has in common with it."""

    def __init__(self, operation: Operation) -> None:
        self.plan = operation.plan
        self.name = f"{operation.name}_grad"
        self.where = operation.where
        self.order: int | None = None
        self.intent = operation.intent
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


class Foreign(Protocol):
    """A function of NumPy arrays that no framework can see into.

    It is pure: the same arrays give the same results, and a framework may call it more or less often than
    the program says. Arrays arrive read-only, and are the framework's own memory where that is possible:
    what it keeps of them, it copies. A result is copied if somebody else holds it.
    """

    name: str
    where: str
    token: int  # from `register`: names it in compiled programs of this process, which hold numbers only

    def __call__(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Run the function once."""

    def batch(self, arrays: Sequence[Any], mapped: Sequence[bool]) -> Sequence[Any]:
        """Run it for a batch: arrays that are mapped have a leading axis of it, and so has every result."""


_tokens = itertools.count(1)
_foreigns: weakref.WeakValueDictionary[int, Foreign] = weakref.WeakValueDictionary()


def register(foreign: Foreign) -> int:
    """Give a foreign function a number of its own, that finds it as long as somebody holds it."""
    token = next(_tokens)
    _foreigns[token] = foreign
    return token


def registered(token: int) -> Foreign:
    """Find a foreign function by its number."""
    return _foreigns[token]


class Arrays(Protocol):
    """Offer the array functions that host-neutral rules are written in, beside Python's own operators."""

    @property
    def abs(self) -> Function: ...
    @property
    def arctan(self) -> Function: ...
    @property
    def argmax(self) -> Function: ...
    @property
    def clip(self) -> Function: ...
    @property
    def floor(self) -> Function: ...
    @property
    def isfinite(self) -> Function: ...
    @property
    def maximum(self) -> Function: ...
    @property
    def round(self) -> Function: ...
    @property
    def sign(self) -> Function: ...
    @property
    def softmax(self) -> Function: ...
    @property
    def sqrt(self) -> Function: ...
    @property
    def stop(self) -> Function: ...
    @property
    def tanh(self) -> Function: ...
    @property
    def where(self) -> Function: ...
    @property
    def zeros_like(self) -> Function: ...

    def cast(self, value: Any, like: Tensor) -> Any:
        """Give a tensor the dtype of another; leave a Python number alone."""

    def wide(self, x: Tensor) -> Tensor:
        """Give a tensor the precision that a sum of its squares needs."""

    def square_sum(self, x: Tensor, keep: int | None) -> Tensor:
        """Sum the squared sizes over all axes, or over all but one, which is kept with its place."""

    def one_hot(self, index: Tensor, like: Tensor, axis: int) -> Tensor:
        """Put a one in the place of each index along an axis of a tensor shaped like another."""

    def trail(self, x: Tensor, like: Tensor) -> Tensor:
        """Add axes of length one behind the last, up to the rank of another tensor."""

    def report(self, bad: Tensor, text: str, counter: Any, result: Tensor) -> Tensor:
        """Add the number of places in `bad` to a counter, or say it; give the result back."""


class Traces(Protocol):
    """What a host offers beside the rest that traces programs whose lengths it does not know."""

    def require_shape(self, cotangent: Tensor, like: Tensor, text: str, label: str) -> Tensor:
        """Give a cotangent that has its input's shape, or is an error when it is computed.

        It says the text, or where only a name can be said, the label.
        """


class Host(Protocol):
    """Execute operations natively in one framework."""

    @property
    def arrays(self) -> Arrays: ...

    def override(self, function: Any, gradients: Gradients) -> Any:
        """Give a function again, or a context where there is none, with other gradients by kind."""

    @property
    def name(self) -> str: ...

    def owns(self, kind: type) -> bool:
        """Tell whether values of this type are tensors of the framework."""

    def opener(self, value: Any) -> Opener | None:
        """Give what takes structures of a value's type apart, if the framework knows it; None for a leaf."""

    def plain(self, values: Sequence[Any]) -> bool:
        """Tell quickly whether all of these are floating tensors, which need no conversion."""

    def tensor(self, value: Any, *, where: str, argument: str) -> Tensor:
        """Turn a variable, an array or a number into a tensor; refuse what has no arithmetic."""

    def spec(self, tensor: Tensor) -> Spec:
        """Describe a tensor."""

    def is_tensor(self, value: Any) -> bool:
        """Tell whether a value is a tensor, and needs no conversion."""

    def differentiable(self, tensor: Tensor) -> bool:
        """Tell whether a gradient can flow to this tensor."""

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Tensor]) -> bool:
        """Tell quickly whether cotangents are tensors of their inputs' known shapes and dtypes."""

    def conform(self, cotangent: Any, like: Tensor) -> Tensor:
        """Cast a cotangent that passed the contract to its input's dtype."""

    def zeros(self, like: Any) -> Tensor:
        """Make the zeros that stand for a missing cotangent, from what `outline` kept."""

    def outline(self, output: Tensor) -> Any:
        """Keep what `zeros` needs to know of an output, and not the output itself."""

    def lone(self, output: Any) -> Any:
        """Give the outline of an output that is a floating tensor, and None for anything else, quickly."""

    def run(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str
    ) -> Any:
        """Call the user's code."""

    def apply(self, operation: Operation, tensors: list[Tensor]) -> list[Tensor]:
        """Run an operation so that the framework differentiates it by its own pullback."""

    def callback(self, foreign: Foreign, tensors: Sequence[Tensor], outputs: Sequence[Spec]) -> list[Tensor]:
        """Run a foreign function as one operation, eagerly, compiled and batched; it has no derivative."""

    def idle(self, tensors: Sequence[Tensor]) -> bool:
        """Tell quickly whether values are all that is wanted: nobody differentiates, traces or listens."""

    def vjp(
        self, function: Callable[..., Any], inputs: Sequence[Tensor], cotangents: Sequence[Any]
    ) -> list[Any]:
        """Differentiate a function by the framework itself."""

    def unbroadcast(self, cotangent: Tensor, like: Tensor) -> Tensor:
        """Sum a cotangent over the axes that broadcasting added."""

    def conjugate(self, tensor: Tensor) -> Tensor:
        """Conjugate a complex tensor; leave a real one alone."""
